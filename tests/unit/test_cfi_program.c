#include "unwind/cfi_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Programs of bytes as DWARF 5, 7.24 writes them, for code from BEGIN with code alignment 4, data alignment -8 and return address column 16. */
#define BEGIN     0x1000
#define MAX_BYTES 32

static struct cfi_entry entry_of(
	const uint8_t *common, size_t common_len, const uint8_t *own, size_t own_len)
{
	return (struct cfi_entry){
		.cie = {.code_align = 4,
			.data_align = -8,
			.ra_register = 16,
			.encoding = 0x1b,
			.program = {common, common_len, 0x8000}},
		.begin = BEGIN,
		.end = BEGIN + 0x10000000,
		.program = {own, own_len, 0x9000},
	};
}

/* x86-64's beginning: CFA = r7 + 8, ra at CFA - 8 */
static const uint8_t x86_common[] = {0x0c, 7, 8, 0x80 | 16, 1};

struct program_case {
	const char *name;
	uint8_t own[MAX_BYTES];
	size_t len;
	uint64_t pc; /* behind BEGIN */
	enum cfi_result result;
	struct cfi_rule cfa, fp, ra, sp;
};

#define CFA(n, o)                                                                                  \
	{                                                                                              \
		.kind = CFI_RULE_REGISTER, .number = (n), .offset = (o)                                    \
	}
#define AT(o)                                                                                      \
	{                                                                                              \
		.kind = CFI_RULE_AT, .offset = (o)                                                         \
	}
#define VALUE(o)                                                                                   \
	{                                                                                              \
		.kind = CFI_RULE_VALUE, .offset = (o)                                                      \
	}
#define IN(n)                                                                                      \
	{                                                                                              \
		.kind = CFI_RULE_REGISTER, .number = (n)                                                   \
	}
#define JUST(k)                                                                                    \
	{                                                                                              \
		.kind = CFI_RULE_##k                                                                       \
	}
#define CODE(k, ...)                                                                               \
	{                                                                                              \
		.kind = CFI_RULE_##k, .expression = (const uint8_t[]){__VA_ARGS__},                        \
		.expression_len = sizeof((const uint8_t[]){__VA_ARGS__})                                   \
	}
#define NONE                                                                                       \
	{                                                                                              \
		.kind = CFI_RULE_UNSPECIFIED                                                               \
	}

static const struct program_case cases[] = {
	{"nothing", {0}, 0, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"nop", {0, 0}, 2, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"advance_loc, before", {0x41, 0x0e, 16}, 3, 3, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"advance_loc, at", {0x41, 0x0e, 16}, 3, 4, CFI_FOUND, CFA(7, 16), NONE, AT(-8), NONE},
	{"advance_loc1", {0x02, 200, 0x0e, 16}, 4, 799, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"advance_loc1, at", {0x02, 200, 0x0e, 16}, 4, 800, CFI_FOUND, CFA(7, 16), NONE, AT(-8), NONE},
	{"advance_loc2", {0x03, 0, 1, 0x0e, 16}, 5, 1023, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"advance_loc2, at", {0x03, 0, 1, 0x0e, 16}, 5, 1024, CFI_FOUND, CFA(7, 16), NONE, AT(-8),
		NONE},
	{"advance_loc4", {0x04, 0, 0, 1, 0, 0x0e, 16}, 7, 0x3ffff, CFI_FOUND, CFA(7, 8), NONE, AT(-8),
		NONE},
	{"advance_loc4, at", {0x04, 0, 0, 1, 0, 0x0e, 16}, 7, 0x40000, CFI_FOUND, CFA(7, 16), NONE,
		AT(-8), NONE},
	{"MIPS_advance_loc8", {0x1d, 2, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16}, 11, 8, CFI_FOUND, CFA(7, 16),
		NONE, AT(-8), NONE},
	/* the operand is at 0x9001 and relative to itself: 0x9001 - 0x7ff1 = 0x1010 */
	{"set_loc, before", {0x01, 0x0f, 0x80, 0xff, 0xff, 0x0e, 16}, 7, 15, CFI_FOUND, CFA(7, 8), NONE,
		AT(-8), NONE},
	{"set_loc, at", {0x01, 0x0f, 0x80, 0xff, 0xff, 0x0e, 16}, 7, 16, CFI_FOUND, CFA(7, 16), NONE,
		AT(-8), NONE},
	{"set_loc backwards", {0x01, 0, 0x70, 0xff, 0xff, 0}, 6, 0, CFI_BROKEN, NONE, NONE, NONE, NONE},
	{"offset", {0x80 | 6, 2}, 2, 0, CFI_FOUND, CFA(7, 8), AT(-16), AT(-8), NONE},
	{"offset of what is not followed", {0x80 | 12, 2}, 2, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8),
		NONE},
	{"offset_extended", {0x05, 6, 0x80, 1}, 4, 0, CFI_FOUND, CFA(7, 8), AT(-1024), AT(-8), NONE},
	{"offset_extended_sf", {0x11, 6, 0x7e}, 3, 0, CFI_FOUND, CFA(7, 8), AT(16), AT(-8), NONE},
	{"GNU_negative_offset_extended", {0x2f, 6, 2}, 3, 0, CFI_FOUND, CFA(7, 8), AT(16), AT(-8),
		NONE},
	{"val_offset", {0x14, 7, 3}, 3, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), VALUE(-24)},
	{"val_offset_sf", {0x15, 7, 0x7d}, 3, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), VALUE(24)},
	{"register", {0x09, 16, 2}, 3, 0, CFI_FOUND, CFA(7, 8), NONE, IN(2), NONE},
	{"undefined", {0x07, 16}, 2, 0, CFI_FOUND, CFA(7, 8), NONE, JUST(UNDEFINED), NONE},
	{"same_value", {0x80 | 6, 2, 0x08, 6}, 4, 0, CFI_FOUND, CFA(7, 8), JUST(SAME), AT(-8), NONE},
	{"expression", {0x10, 6, 2, 0x77, 8}, 5, 0, CFI_FOUND, CFA(7, 8), CODE(AT_EXPRESSION, 0x77, 8),
		AT(-8), NONE},
	{"val_expression", {0x16, 6, 1, 0x30}, 4, 0, CFI_FOUND, CFA(7, 8), CODE(EXPRESSION, 0x30),
		AT(-8), NONE},
	{"restore", {0x80 | 16, 5, 0xc0 | 16}, 3, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"restore to nothing", {0x80 | 6, 5, 0xc0 | 6}, 3, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"restore_extended", {0x80 | 16, 5, 0x06, 16}, 4, 0, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"remember and restore", {0x80 | 6, 2, 0x0a, 0xc0 | 6, 0x0e, 32, 0x0b}, 7, 0, CFI_FOUND,
		CFA(7, 8), AT(-16), AT(-8), NONE},
	{"remember twice", {0x0a, 0x0e, 16, 0x0a, 0x0e, 24, 0x0b}, 7, 0, CFI_FOUND, CFA(7, 16), NONE,
		AT(-8), NONE},
	{"restore_state of nothing", {0x0b}, 1, 0, CFI_BROKEN, NONE, NONE, NONE, NONE},
	{"def_cfa", {0x0c, 6, 16}, 3, 0, CFI_FOUND, CFA(6, 16), NONE, AT(-8), NONE},
	{"def_cfa_sf", {0x12, 6, 0x7e}, 3, 0, CFI_FOUND, CFA(6, 16), NONE, AT(-8), NONE},
	{"def_cfa_register", {0x0d, 6}, 2, 0, CFI_FOUND, CFA(6, 8), NONE, AT(-8), NONE},
	{"def_cfa_offset", {0x0e, 0x90, 1}, 3, 0, CFI_FOUND, CFA(7, 144), NONE, AT(-8), NONE},
	{"def_cfa_offset_sf", {0x13, 0x7c}, 2, 0, CFI_FOUND, CFA(7, 32), NONE, AT(-8), NONE},
	{"def_cfa_expression", {0x0f, 3, 0x77, 8, 6}, 5, 0, CFI_FOUND, CODE(EXPRESSION, 0x77, 8, 6),
		NONE, AT(-8), NONE},
	{"half a definition behind an expression", {0x0f, 1, 0x77, 0x0e, 8}, 5, 0, CFI_BROKEN, NONE,
		NONE, NONE, NONE},
	{"GNU_args_size", {0x2e, 0x80, 2, 0x0e, 16}, 5, 0, CFI_FOUND, CFA(7, 16), NONE, AT(-8), NONE},
	{"what aarch64 has for x86", {0x2d}, 1, 0, CFI_UNKNOWN, NONE, NONE, NONE, NONE},
	{"what nobody has", {0x3f}, 1, 0, CFI_UNKNOWN, NONE, NONE, NONE, NONE},
	{"an unknown one behind the row", {0x42, 0x3f}, 2, 4, CFI_FOUND, CFA(7, 8), NONE, AT(-8), NONE},
	{"an operand that is missing", {0x0e}, 1, 0, CFI_BROKEN, NONE, NONE, NONE, NONE},
	{"an expression that is longer than all", {0x0f, 9, 0x30}, 3, 0, CFI_BROKEN, NONE, NONE, NONE,
		NONE},
	{"an advance that wraps", {0x1d, 255, 255, 255, 255, 255, 255, 255, 255}, 9, 0, CFI_BROKEN,
		NONE, NONE, NONE, NONE},
};

static bool is_same(const struct cfi_rule *got, const struct cfi_rule *want)
{
	return got->kind == want->kind && got->number == want->number && got->offset == want->offset &&
		   got->expression_len == want->expression_len &&
		   (want->expression_len == 0 ||
			   memcmp(got->expression, want->expression, want->expression_len) == 0);
}

static void every_instruction_does_what_the_standard_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct program_case *wanted = &cases[i];
		const struct cfi_entry entry =
			entry_of(x86_common, sizeof(x86_common), wanted->own, wanted->len);
		struct cfi_row row = {0};
		enum cfi_result result =
			cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN + wanted->pc, &row, NULL);

		if (result != wanted->result ||
			(result == CFI_FOUND &&
				(!is_same(&row.cfa, &wanted->cfa) || !is_same(&row.rules[CFI_FP], &wanted->fp) ||
					!is_same(&row.rules[CFI_RA], &wanted->ra) ||
					!is_same(&row.rules[CFI_SP], &wanted->sp)))) {
			fail_msg("%s: result %d, cfa %d r%d%+d, fp %d %+d, ra %d %+d", wanted->name, result,
				row.cfa.kind, (int)row.cfa.number, (int)row.cfa.offset, row.rules[CFI_FP].kind,
				(int)row.rules[CFI_FP].offset, row.rules[CFI_RA].kind,
				(int)row.rules[CFI_RA].offset);
		}
	}
}

static void aarch64_tells_where_return_addresses_are_signed(void **state)
{
	(void)state;
	/* def_cfa x31+0; negate; advance 1; offset x29, x30; remember; negate; advance 1; restore_state */
	static const uint8_t common[] = {0x0c, 31, 0};
	static const uint8_t own[] = {
		0x2d, 0x41, 0x0e, 16, 0x80 | 29, 2, 0x80 | 30, 1, 0x0a, 0x41, 0x2d, 0x41, 0x0b};
	static const bool is_signed[] = {true, true, false, true};
	struct cfi_entry entry = entry_of(common, sizeof(common), own, sizeof(own));

	entry.cie.ra_register = 30;
	for (uint64_t i = 0; i < 4; i++) {
		struct cfi_row row = {0};

		assert_int_equal(
			cfi_program_run(&unwind_machine_aarch64, &entry, BEGIN + 4 * i, &row, NULL), CFI_FOUND);
		assert_int_equal(row.is_signed, is_signed[i]);
		assert_true(row.is_ra_in_lr);
		assert_int_equal(row.rules[CFI_RA].kind, i == 0 ? CFI_RULE_UNSPECIFIED : CFI_RULE_AT);
		assert_int_equal(row.rules[CFI_FP].offset, i == 0 ? 0 : -16);
	}
}

static void a_common_program_may_not_restore_nor_advance_past_the_place(void **state)
{
	(void)state;
	static const uint8_t restores[] = {0x0c, 7, 8, 0xc0 | 16}, advances[] = {0x0c, 7, 8, 0x50};
	struct cfi_entry entry = entry_of(restores, sizeof(restores), restores, 0);
	struct cfi_row row;

	assert_int_equal(
		cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN, &row, NULL), CFI_BROKEN);
	entry = entry_of(advances, sizeof(advances), advances, 0);
	assert_int_equal(
		cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN, &row, NULL), CFI_BROKEN);
}

static void remembering_without_end_is_given_up(void **state)
{
	(void)state;
	uint8_t own[CFI_REMEMBERED + 1];
	struct cfi_row row;

	memset(own, 0x0a, sizeof(own));
	struct cfi_entry entry = entry_of(x86_common, sizeof(x86_common), own, CFI_REMEMBERED);
	assert_int_equal(cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN, &row, NULL), CFI_FOUND);
	entry.program.len = CFI_REMEMBERED + 1;
	assert_int_equal(
		cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN, &row, NULL), CFI_UNKNOWN);
}

static void a_signal_frame_is_told_by_its_entry(void **state)
{
	(void)state;
	struct cfi_entry entry = entry_of(x86_common, sizeof(x86_common), NULL, 0);
	struct cfi_row row;

	entry.cie.is_signal = true;
	assert_int_equal(cfi_program_run(&unwind_machine_x86_64, &entry, BEGIN, &row, NULL), CFI_FOUND);
	assert_true(row.is_signal);
	assert_false(row.is_ra_in_lr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_does_what_the_standard_says),
		cmocka_unit_test(aarch64_tells_where_return_addresses_are_signed),
		cmocka_unit_test(a_common_program_may_not_restore_nor_advance_past_the_place),
		cmocka_unit_test(remembering_without_end_is_given_up),
		cmocka_unit_test(a_signal_frame_is_told_by_its_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
