#include "unwind/stub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/unwind_stage.h"

/* What stands before the address in the image, and whether a function without information that has frame pointers can have been called from there. */
static void check_call(
	const struct unwind_machine *machine, const uint8_t *code, size_t len, bool is_call)
{
	struct unwind_stage stage;

	unwind_stage_begin(&stage, machine);
	unwind_stage_function(&stage, 1, IS_ROOT);
	unwind_stage_map(&stage);
	memcpy(unwind_stage_bytes + MADE_CODE + 0x180 - len, code, len);
	stage.sample.regs.pc = CODE + 0x1010;
	stage.sample.regs.fp = STACK + 8 * 3;
	stage.words[3] = STACK + 8 * 8;
	stage.words[4] = CODE + 0x180;
	if (is_call) {
		EXPECT(&stage, UNWIND_ROOT, CODE + 0x1010, CODE + 0x180);
		assert_int_equal(stage.stack.guesses, 1);
	} else {
		EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x1010);
	}
	unwind_stage_finish(&stage);
}

#define CALL(machine, is_call, ...)                                                                \
	check_call((machine), (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), is_call)

/* As binutils assembles calls by each way to say where, and what is none. */
static void without_information_only_behind_a_call_is_a_caller(void **state)
{
	(void)state;
	const struct unwind_machine *x86 = &unwind_machine_x86_64, *arm = &unwind_machine_aarch64;

	CALL(x86, true, 0xe8, 1, 2, 3, 4);                             /* call near */
	CALL(x86, true, 0xff, 0xd0);                                   /* call *%rax */
	CALL(x86, true, 0x41, 0xff, 0xd4);                             /* call *%r12 */
	CALL(x86, true, 0xff, 0x13);                                   /* call *(%rbx) */
	CALL(x86, true, 0xff, 0x15, 1, 2, 3, 4);                       /* call *near(%rip) */
	CALL(x86, true, 0xff, 0x14, 0xc3);                             /* call *(%rbx,%rax,8) */
	CALL(x86, true, 0xff, 0x14, 0xc5, 1, 2, 3, 4);                 /* call *near(,%rax,8) */
	CALL(x86, true, 0xff, 0x50, 0x18);                             /* call *0x18(%rax) */
	CALL(x86, true, 0xff, 0x54, 0x24, 8);                          /* call *8(%rsp) */
	CALL(x86, true, 0xff, 0x90, 0, 1, 0, 0);                       /* call *0x100(%rax) */
	CALL(x86, true, 0xff, 0x94, 0xc3, 0, 1, 0, 0);                 /* call *0x100(%rbx,%rax,8) */
	CALL(x86, false, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90);    /* nop */
	CALL(x86, false, 0xff, 0xe0);                                  /* jmp *%rax */
	CALL(x86, false, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0); /* padding */
	CALL(x86, false, 0xff, 0xd0, 0x90);                            /* a call and another */
	CALL(arm, true, 4, 3, 2, 0x94);                                /* bl */
	CALL(arm, true, 0x20, 0, 0x3f, 0xd6);                          /* blr x1 */
	CALL(arm, true, 0x22, 0x08, 0x3f, 0xd7);                       /* blraa x1, x2 */
	CALL(arm, true, 0x3f, 0x0c, 0x3f, 0xd6);                       /* blrabz x1 */
	CALL(arm, false, 4, 3, 2, 0x14);                               /* b */
	CALL(arm, false, 0x20, 0, 0x1f, 0xd6);                         /* br x1 */
	CALL(arm, false, 0xc0, 0x03, 0x5f, 0xd6);                      /* ret */
}

static void a_return_address_that_was_put_there_is_the_root(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 2, IS_LEAF);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.words[0] =
		CODE + 0x200; /* function 2 begins there, and nothing is known of what is before it */
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x200);
	stage.words[0] = CODE + 0x1f0;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, CODE + 0x1f0);
	unwind_stage_finish(&stage);
	/* But behind a call that is the last of a function without information the caller is that function. */
	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 2, IS_LEAF);
	unwind_stage_map(&stage);
	memcpy(unwind_stage_bytes + MADE_CODE + 0x200 - 5, (const uint8_t[]){0xe8, 0, 1, 0, 0}, 5);
	stage.words[0] = CODE + 0x200;
	stage.sample.regs.pc = CODE + 0x10;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, CODE + 0x200);
	unwind_stage_finish(&stage);
}

static void save(struct unwind_stage *stage, uint16_t offset, uint64_t value)
{
	memcpy((uint8_t *)stage->words + offset, &value, sizeof(value));
}

/* A trampoline without information (musl's), of either machine: at sp what the kernel saved, each register at its offset. */
static void check_trampoline(const struct unwind_machine *machine)
{
	struct unwind_stage stage;

	unwind_stage_begin(&stage, machine);
	unwind_stage_function(&stage, 0, HAS_FP);
	unwind_stage_function(&stage, 1, IS_ROOT);
	unwind_stage_map(&stage);
	memcpy(
		unwind_stage_bytes + MADE_CODE + 0x1000, machine->signal_code, machine->signal_code_bytes);
	stage.sample.regs.pc = CODE + 0x1000;
	save(&stage, machine->signal_pc, CODE);
	save(&stage, machine->signal_sp, STACK + 8 * 100);
	save(&stage, machine->signal_fp, STACK + 8 * 110);
	stage.words[111] = CODE + 0x110;
	if (machine->image == IMAGE_MACHINE_X86_64) {
		EXPECT(&stage, UNWIND_ROOT, CODE + 0x1000, CODE, CODE + 0x110);
	} else {
		EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x1000, CODE); /* CFA = x6: not known here */
	}
	assert_int_equal(stage.kinds[1], UNWIND_EXACT);
	unwind_stage_finish(&stage);
}

static void a_trampoline_is_known_by_its_instructions(void **state)
{
	(void)state;
	check_trampoline(&unwind_machine_x86_64);
	check_trampoline(&unwind_machine_aarch64);
}

/* An entry of a linkage table at CODE + 0x1000, called from CODE + 0x110: at each of its instructions the caller is known. */
static void check_entry(const struct unwind_machine *machine, const uint8_t *code,
	const uint8_t *instructions, size_t count, size_t pushed)
{
	struct unwind_stage stage;

	unwind_stage_begin(&stage, machine);
	unwind_stage_function(&stage, 1, IS_ROOT);
	unwind_stage_map(&stage);
	memcpy(unwind_stage_bytes + MADE_CODE + 0x1000, code, 16);
	/* what the frame pointer would say is wrong */
	stage.sample.regs.fp = STACK + 8 * 20;
	stage.sample.regs.lr = CODE + 0x110;
	stage.words[21] = CODE + 0x120;
	for (size_t i = 0; i < count; i++) {
		stage.sample.regs.pc = CODE + 0x1000 + instructions[i];
		stage.words[0] = i >= pushed ? 7 : CODE + 0x110;
		stage.words[1] = CODE + 0x110;
		unwind_walk(stage.unwinder, &stage.space, &stage.sample, &stage.stack);
		assert_int_equal(stage.stack.count, 2);
		assert_int_equal(stage.addresses[1], CODE + 0x110);
	}
	unwind_stage_finish(&stage);
}

static void entries_of_linkage_tables_are_known_by_their_instructions(void **state)
{
	(void)state;
	static const uint8_t lld[] = {
		0xff, 0x25, 0x52, 0x17, 0, 0, 0x68, 3, 0, 0, 0, 0xe9, 0xb0, 0xff, 0xff, 0xff};
	static const uint8_t mold[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 3, 0, 0, 0, 0xff, 0x25, 0x52, 0x17, 0, 0};
	static const uint8_t arm[] = {
		0x10, 5, 0, 0x90, 0x11, 6, 0x40, 0xf9, 0x10, 0x22, 0, 0x91, 0x20, 2, 0x1f, 0xd6};

	static const uint8_t in_address[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x52, 0x17, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0};
	static const uint8_t of_static[] = {
		0xff, 0x25, 0xe2, 0x2f, 0x0a, 0, 0x66, 0x90, 0xff, 0x25, 0xe2, 0x2f, 0x0a, 0, 0x66, 0x90};

	check_entry(&unwind_machine_x86_64, in_address, (const uint8_t[]){0, 4}, 2, 2);
	check_entry(&unwind_machine_x86_64, of_static, (const uint8_t[]){0, 8}, 2, 2);
	check_entry(&unwind_machine_x86_64, lld, (const uint8_t[]){0, 6, 11}, 3, 2);
	check_entry(&unwind_machine_x86_64, mold, (const uint8_t[]){0, 4, 10}, 3, 3);
	check_entry(&unwind_machine_aarch64, arm, (const uint8_t[]){0, 4, 8, 12}, 4, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_information_only_behind_a_call_is_a_caller),
		cmocka_unit_test(a_return_address_that_was_put_there_is_the_root),
		cmocka_unit_test(a_trampoline_is_known_by_its_instructions),
		cmocka_unit_test(entries_of_linkage_tables_are_known_by_their_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
