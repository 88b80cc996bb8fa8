#include "unwind/cfi_expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define STACK 0x7000

static const uint8_t stack_bytes[20] = {
	1, 2, 3, 4, 5, 6, 7, 0x88, 0x10, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
static const struct unwind_memory memory = {stack_bytes, STACK, sizeof(stack_bytes)};
static const uint64_t others[17] = {[3] = 333, [10] = 1010, [12] = 1212};

static struct unwind_frame frame_of(const struct unwind_machine *machine)
{
	return (struct unwind_frame){.machine = machine,
		.regs = {.pc = 0x401017, .sp = STACK, .fp = STACK + 8, .lr = 0x4444},
		.is_fp_known = true,
		.is_lr_known = true,
		.others = others,
		.others_known = 1 << 3 | 1 << 10,
		.memory = &memory};
}

struct expression_case {
	const char *name;
	uint8_t bytes[24];
	size_t len;
	enum cfi_value result;
	uint64_t value; /* with CFI_VALUE_UNREADABLE: the address */
};

/* Each begins with 100 (the "CFA") on the stack. */
static const struct expression_case cases[] = {
	{"nothing gives what was there", {0}, 0, CFI_VALUE, 100},
	{"lit0", {0x30}, 1, CFI_VALUE, 0},
	{"lit31", {0x4f}, 1, CFI_VALUE, 31},
	{"const1u", {0x08, 0xfe}, 2, CFI_VALUE, 254},
	{"const1s", {0x09, 0xfe}, 2, CFI_VALUE, (uint64_t)-2},
	{"const2u", {0x0a, 0xfe, 0xff}, 3, CFI_VALUE, 65534},
	{"const2s", {0x0b, 0xfe, 0xff}, 3, CFI_VALUE, (uint64_t)-2},
	{"const4u", {0x0c, 0xfe, 0xff, 0xff, 0xff}, 5, CFI_VALUE, 0xfffffffe},
	{"const4s", {0x0d, 0xfe, 0xff, 0xff, 0xff}, 5, CFI_VALUE, (uint64_t)-2},
	{"const8u", {0x0e, 1, 2, 3, 4, 5, 6, 7, 8}, 9, CFI_VALUE, 0x0807060504030201},
	{"const8s", {0x0f, 254, 255, 255, 255, 255, 255, 255, 255}, 9, CFI_VALUE, (uint64_t)-2},
	{"constu", {0x10, 0x80, 1}, 3, CFI_VALUE, 128},
	{"consts", {0x11, 0x7f}, 2, CFI_VALUE, (uint64_t)-1},
	{"dup", {0x12, 0x22}, 2, CFI_VALUE, 200},
	{"drop", {0x31, 0x13}, 2, CFI_VALUE, 100},
	{"over", {0x31, 0x14}, 2, CFI_VALUE, 100},
	{"pick 0", {0x31, 0x15, 0}, 3, CFI_VALUE, 1},
	{"pick 2", {0x31, 0x32, 0x15, 2}, 4, CFI_VALUE, 100},
	{"pick too deep", {0x31, 0x15, 2}, 3, CFI_VALUE_BROKEN, 0},
	{"swap", {0x31, 0x16}, 2, CFI_VALUE, 100},
	/* 1 2 3, top 3, becomes 3 1 2: 2 - … */
	{"rot, the top", {0x31, 0x32, 0x33, 0x17}, 4, CFI_VALUE, 2},
	{"rot, the second", {0x31, 0x32, 0x33, 0x17, 0x13}, 5, CFI_VALUE, 1},
	{"rot, the third", {0x31, 0x32, 0x33, 0x17, 0x13, 0x13}, 6, CFI_VALUE, 3},
	{"rot of two", {0x31, 0x17}, 2, CFI_VALUE_BROKEN, 0},
	{"abs", {0x09, 0xfb, 0x19}, 3, CFI_VALUE, 5},
	{"and", {0x3e, 0x37, 0x1a}, 3, CFI_VALUE, 6},
	{"div is signed", {0x09, 0xf9, 0x32, 0x1b}, 4, CFI_VALUE, (uint64_t)-3},
	{"div of the least by -1", {0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b}, 12, CFI_VALUE,
		(uint64_t)INT64_MIN},
	{"div by 0", {0x30, 0x1b}, 2, CFI_VALUE_BROKEN, 0},
	{"minus", {0x35, 0x37, 0x1c}, 3, CFI_VALUE, (uint64_t)-2},
	{"mod is unsigned", {0x09, 0xff, 0x3a, 0x1d}, 4, CFI_VALUE, 5},
	{"mod by 0", {0x30, 0x1d}, 2, CFI_VALUE_BROKEN, 0},
	{"mul", {0x36, 0x37, 0x1e}, 3, CFI_VALUE, 42},
	{"neg", {0x35, 0x1f}, 2, CFI_VALUE, (uint64_t)-5},
	{"not", {0x35, 0x20}, 2, CFI_VALUE, ~UINT64_C(5)},
	{"or", {0x35, 0x3a, 0x21}, 3, CFI_VALUE, 15},
	{"plus", {0x35, 0x22}, 2, CFI_VALUE, 105},
	{"plus_uconst", {0x23, 0x80, 1}, 3, CFI_VALUE, 228},
	{"shl", {0x35, 0x33, 0x24}, 3, CFI_VALUE, 40},
	{"shl too far", {0x35, 0x08, 64, 0x24}, 4, CFI_VALUE, 0},
	{"shr", {0x09, 0xff, 0x08, 60, 0x25}, 5, CFI_VALUE, 15},
	{"shra", {0x09, 0xf0, 0x32, 0x26}, 4, CFI_VALUE, (uint64_t)-4},
	{"shra too far", {0x09, 0xf0, 0x08, 99, 0x26}, 5, CFI_VALUE, UINT64_MAX},
	{"xor", {0x35, 0x33, 0x27}, 3, CFI_VALUE, 6},
	{"bra taken", {0x31, 0x28, 1, 0, 0x35, 0x36}, 6, CFI_VALUE, 6},
	{"bra not taken", {0x30, 0x28, 1, 0, 0x35}, 5, CFI_VALUE, 5},
	{"eq", {0x35, 0x35, 0x29}, 3, CFI_VALUE, 1},
	{"ge", {0x35, 0x35, 0x2a}, 3, CFI_VALUE, 1},
	{"gt is signed", {0x31, 0x09, 0xff, 0x2b}, 4, CFI_VALUE, 1},
	{"le is signed", {0x31, 0x09, 0xff, 0x2c}, 4, CFI_VALUE, 0},
	{"lt", {0x35, 0x36, 0x2d}, 3, CFI_VALUE, 1},
	{"ne", {0x35, 0x36, 0x2e}, 3, CFI_VALUE, 1},
	{"skip", {0x2f, 1, 0, 0x31}, 4, CFI_VALUE, 100},
	{"skip to behind the end", {0x2f, 9, 0}, 3, CFI_VALUE_BROKEN, 0},
	{"skip to before the beginning", {0x2f, 0xfc, 0xff}, 3, CFI_VALUE_BROKEN, 0},
	{"skip for ever", {0x2f, 0xfd, 0xff}, 3, CFI_VALUE_BROKEN, 0},
	{"breg7", {0x77, 0x78}, 2, CFI_VALUE, STACK - 8},
	{"breg6", {0x76, 8}, 2, CFI_VALUE, STACK + 16},
	{"breg16, the pc", {0x80, 0}, 2, CFI_VALUE, 0x401017},
	{"breg10, of the innermost frame", {0x7a, 1}, 2, CFI_VALUE, 1011},
	{"breg12, which nobody knows", {0x7c, 1}, 2, CFI_VALUE_UNKNOWN, 0},
	{"bregx", {0x92, 3, 0x7f}, 3, CFI_VALUE, 332},
	{"bregx of no register", {0x92, 0xff, 1, 0}, 4, CFI_VALUE_UNKNOWN, 0},
	{"deref", {0x77, 8, 0x06}, 3, CFI_VALUE, 0x10},
	{"deref_size 4", {0x77, 4, 0x94, 4}, 4, CFI_VALUE, 0x88070605},
	{"deref_size 1", {0x77, 7, 0x94, 1}, 4, CFI_VALUE, 0x88},
	{"deref_size 9", {0x77, 0, 0x94, 9}, 4, CFI_VALUE_BROKEN, 0},
	{"deref_size 0", {0x77, 0, 0x94, 0}, 4, CFI_VALUE_BROKEN, 0},
	{"deref half behind the copy", {0x77, 16, 0x06}, 3, CFI_VALUE_UNREADABLE, STACK + 20},
	{"deref before the copy", {0x77, 0x7f, 0x06}, 3, CFI_VALUE_UNREADABLE, STACK - 1},
	{"nop", {0x96}, 1, CFI_VALUE, 100},
	{"addr", {0x03, 0, 0, 0, 0, 0, 0, 0, 0}, 9, CFI_VALUE_UNKNOWN, 0},
	{"call_frame_cfa, which 6.4.2 excludes", {0x9c}, 1, CFI_VALUE_UNKNOWN, 0},
	{"reg0, which is a place and no value", {0x50}, 1, CFI_VALUE_UNKNOWN, 0},
	{"stack_value", {0x9f}, 1, CFI_VALUE_UNKNOWN, 0},
	{"an operand that is missing", {0x0a, 1}, 2, CFI_VALUE_BROKEN, 0},
	{"nothing left", {0x13}, 1, CFI_VALUE_BROKEN, 0},
	{"drop of nothing", {0x13, 0x13}, 2, CFI_VALUE_BROKEN, 0},
	{"plus of one", {0x22}, 1, CFI_VALUE_BROKEN, 0},
	/* glibc's PLT: rsp + 8 + (((rip & 15) >= 11) << 3) */
	{"a procedure linkage table, before its push",
		{0x77, 8, 0x80, 0x74, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, CFI_VALUE, STACK + 16},
	{"a procedure linkage table, behind its push",
		{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, CFI_VALUE, STACK + 8},
};

static void every_operation_does_what_the_standard_says(void **state)
{
	(void)state;
	const struct unwind_frame frame = frame_of(&unwind_machine_x86_64);
	const uint64_t initial = 100;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct cfi_expression expression = {cases[i].bytes, cases[i].len};
		uint64_t value = 0, address = 0;
		enum cfi_value result = cfi_expression_run(&expression, &frame, &initial, &value, &address);
		uint64_t got = result == CFI_VALUE_UNREADABLE ? address : value;

		if (result != cases[i].result || got != cases[i].value) {
			fail_msg("%s: %d, %llx", cases[i].name, result, (unsigned long long)got);
		}
	}
}

static void without_a_beginning_the_stack_is_empty(void **state)
{
	(void)state;
	const struct unwind_frame frame = frame_of(&unwind_machine_x86_64);
	const struct cfi_expression nothing = {NULL, 0}, dup = {(const uint8_t[]){0x12}, 1};
	uint64_t value, address;

	assert_int_equal(
		cfi_expression_run(&nothing, &frame, NULL, &value, &address), CFI_VALUE_BROKEN);
	assert_int_equal(cfi_expression_run(&dup, &frame, NULL, &value, &address), CFI_VALUE_BROKEN);
}

static void a_stack_that_runs_over_is_broken(void **state)
{
	(void)state;
	const struct unwind_frame frame = frame_of(&unwind_machine_x86_64);
	uint8_t bytes[CFI_EXPRESSION_BYTES + 1];
	struct cfi_expression expression = {bytes, CFI_EXPRESSION_STACK};
	uint64_t value, address;

	memset(bytes, 0x31, sizeof(bytes));
	assert_int_equal(cfi_expression_run(&expression, &frame, NULL, &value, &address), CFI_VALUE);
	expression.len++;
	assert_int_equal(
		cfi_expression_run(&expression, &frame, NULL, &value, &address), CFI_VALUE_BROKEN);
	memset(bytes, 0x96, sizeof(bytes));
	bytes[0] = 0x31;
	expression.len = CFI_EXPRESSION_BYTES;
	assert_int_equal(cfi_expression_run(&expression, &frame, NULL, &value, &address), CFI_VALUE);
	expression.len++;
	assert_int_equal(
		cfi_expression_run(&expression, &frame, NULL, &value, &address), CFI_VALUE_UNKNOWN);
}

static void registers_have_each_machine_s_numbers(void **state)
{
	(void)state;
	struct unwind_frame frame = frame_of(&unwind_machine_aarch64);
	uint64_t value;

	frame.others = NULL;
	assert_true(unwind_frame_register(&frame, 31, &value) && value == STACK);
	assert_true(unwind_frame_register(&frame, 29, &value) && value == STACK + 8);
	assert_true(unwind_frame_register(&frame, 30, &value) && value == 0x4444);
	assert_true(unwind_frame_register(&frame, 32, &value) && value == 0x401017);
	assert_false(unwind_frame_register(&frame, 7, &value));
	frame.is_fp_known = frame.is_lr_known = false;
	assert_false(unwind_frame_register(&frame, 29, &value));
	assert_false(unwind_frame_register(&frame, 30, &value));
	frame.machine = &unwind_machine_x86_64;
	assert_false(unwind_frame_register(&frame, UNWIND_NO_REGISTER, &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_does_what_the_standard_says),
		cmocka_unit_test(without_a_beginning_the_stack_is_empty),
		cmocka_unit_test(a_stack_that_runs_over_is_broken),
		cmocka_unit_test(registers_have_each_machine_s_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
