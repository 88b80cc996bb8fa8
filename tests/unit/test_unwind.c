#include "unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/unwind_stage.h"

static void a_walk_goes_from_the_leaf_to_the_root(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 1, SAVES_FP);
	unwind_stage_function(&stage, 2, HAS_FP);
	unwind_stage_function(&stage, 3, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.sample.regs.fp = 1;
	stage.words[0] = CODE + 0x110;  /* leaf's */
	stage.words[1] = STACK + 8 * 6; /* fp, saved by function 1 */
	stage.words[2] = CODE + 0x210;
	stage.words[6] = 77; /* fp, saved by function 2 */
	stage.words[7] = CODE + 0x310;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210, CODE + 0x310);
	assert_memory_equal(stage.kinds, ((uint8_t[]){UNWIND_EXACT, 0, 0, 0}), 4);
	assert_int_equal(stage.stack.records, 0);
	assert_int_equal(unwinder_counters(stage.unwinder)->misses, 4);
	assert_int_equal(unwinder_counters(stage.unwinder)->frames, 8);
	unwind_stage_finish(&stage);
}

static void a_call_that_is_the_last_of_its_function_belongs_to_it(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, SAVES_FP);
	unwind_stage_function(&stage, 1, IS_ROOT);
	unwind_stage_function(&stage, 2, IS_LEAF);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x200; /* its first instruction, not the end of function 1 */
	stage.words[0] = CODE + 0x100;       /* behind the last instruction of function 0 */
	stage.words[1] = 5;
	stage.words[2] = CODE + 0x180;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x200, CODE + 0x100, CODE + 0x180);
	unwind_stage_finish(&stage);
}

static void in_an_epilogue_the_frame_pointer_is_back_already(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	/* the row behind "pop rbp": CFA = sp + 8, and rbp is still said to be at CFA - 16 */
	unwind_stage_function(&stage, 0, MADE_PROGRAM(0x86, 2));
	unwind_stage_function(&stage, 1, HAS_FP);
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.sample.regs.fp = STACK + 8 * 4;
	stage.words[0] = CODE + 0x110;
	stage.words[5] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	unwind_stage_finish(&stage);
}

static void a_row_that_lags_behind_a_realigned_frame_s_end_is_seen_through(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	/* gcc: "pop %rbp; lea -8(%r10),%rsp; ret": CFA = r10, then sp + 8, and rbp is still said to be at *(rbp) */
	unwind_stage_function(
		&stage, 0, MADE_PROGRAM(0x10, 6, 2, 0x76, 0, 0x0c, 10, 0, 0x44, 0x0c, 7, 8));
	unwind_stage_function(&stage, 1, HAS_FP);
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_map(&stage);
	const uint64_t others[17] = {[10] = STACK + 16};
	stage.sample.others = others;
	stage.sample.others_known = 1 << 10;
	stage.sample.regs.fp = STACK + 8 * 4;
	stage.words[0] = stage.words[1] = CODE + 0x110;
	stage.words[4] = 123;
	stage.words[5] = CODE + 0x210;
	stage.sample.regs.pc = CODE;
	EXPECT(&stage, UNWIND_ROOT, CODE, CODE + 0x110, CODE + 0x210);
	stage.sample.regs.pc = CODE + 4;
	EXPECT(&stage, UNWIND_ROOT, CODE + 4, CODE + 0x110, CODE + 0x210);
	/* in its middle the same rule holds: here rbp points into the frame, at what was saved */
	stage.sample.regs.pc = CODE;
	stage.sample.regs.fp = STACK + 0;
	stage.words[0] = STACK + 8 * 4;
	EXPECT(&stage, UNWIND_ROOT, CODE, CODE + 0x110, CODE + 0x210);
	unwind_stage_finish(&stage);
}

static void a_frame_pointer_that_is_lost_ends_only_walks_that_need_it(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, MADE_PROGRAM(0x11, 6, 0x80, 0x40)); /* far above the copy */
	unwind_stage_function(&stage, 1, IS_LEAF);
	unwind_stage_function(&stage, 2, HAS_FP);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE;
	stage.words[0] = CODE + 0x110;
	EXPECT(&stage, UNWIND_ROOT, CODE, CODE + 0x110);
	stage.words[1] = CODE + 0x210;
	EXPECT(&stage, UNWIND_NO_RULE, CODE, CODE + 0x110, CODE + 0x210);
	unwind_stage_finish(&stage);
}

static void code_without_information_is_left_by_its_frame_pointer(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 1, HAS_FP);
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs = (struct unwind_regs){.pc = CODE + 0x10, .sp = STACK, .fp = STACK + 8 * 3};
	stage.words[0] = JIT + 0x40;
	stage.words[3] = STACK + 8 * 8;
	stage.words[4] = CODE + 0x110;
	stage.words[8] = 0;
	stage.words[9] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, JIT + 0x40, CODE + 0x110, CODE + 0x210);
	assert_int_equal(stage.stack.records, 1);
	/* it leads to no code */
	stage.words[4] = STACK + 0x10;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	/* it is something else than a frame pointer */
	stage.sample.regs.fp = 0x1234;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	stage.sample.regs.fp = STACK + 8 * 3 + 1;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	/* it points behind the copy, but within reach */
	stage.sample.regs.fp = STACK + 8 * WORDS;
	EXPECT(&stage, UNWIND_CUT, CODE + 0x10, JIT + 0x40);
	/* the outermost frame has none, where frame pointers are used: one has led there */
	stage.sample.regs.fp = STACK + 8 * 3;
	stage.words[3] = 0;
	stage.words[4] = JIT + 0x80;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, JIT + 0x40, JIT + 0x80);
	/* elsewhere 0 is a number as any other */
	stage.sample.regs.fp = 0;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	/* but a leaf's says nothing */
	stage.sample.regs.pc = JIT + 0x50;
	EXPECT(&stage, UNWIND_NO_RULE, JIT + 0x50);
	unwind_stage_finish(&stage);
}

static void frame_pointers_can_be_left_out_of_it(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwinder_use_frame_pointers(stage.unwinder, false);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 1, HAS_FP);
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs = (struct unwind_regs){.pc = CODE + 0x10, .sp = STACK, .fp = STACK + 8 * 3};
	stage.words[3] = STACK + 8 * 8;
	stage.words[4] = CODE + 0x210;
	stage.words[9] = CODE + 0x210;
	/* a frame pointer that a row asks for is another matter */
	stage.words[0] = CODE + 0x110;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	stage.words[0] = JIT + 0x40;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	unwind_stage_finish(&stage);
}

static void what_is_not_understood_is_no_rule_and_not_left_by_guessing(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, MADE_PROGRAM(0x3f)); /* no instruction */
	unwind_stage_function(&stage, 1, MADE_PROGRAM(0x0b)); /* restores what was not remembered */
	unwind_stage_function(&stage, 2, MADE_PROGRAM(0x0c, 10, 0));   /* CFA = r10 */
	unwind_stage_function(&stage, 3, MADE_PROGRAM(0x0f, 1, 0x22)); /* CFA = + of nothing */
	unwind_stage_map(&stage);
	stage.sample.regs.fp = STACK;
	stage.words[1] = CODE + 0x10;
	for (uint64_t i = 0; i < 4; i++) {
		stage.sample.regs.pc = CODE + 0x100 * i;
		EXPECT(&stage, i % 2 == 0 ? UNWIND_NO_RULE : UNWIND_BAD, CODE + 0x100 * i);
	}
	/* of the innermost frame all registers may be known */
	const uint64_t others[17] = {[10] = STACK + 16};
	stage.sample.regs.pc = CODE + 0x200;
	stage.sample.others = others;
	stage.sample.others_known = 1 << 10;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x200, CODE + 0x10);
	unwind_stage_finish(&stage);
}

static void a_frame_that_is_counted_from_a_saved_register_is_left(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(
		&stage, 0, MADE_PROGRAM(0x0e, 24, 0x83, 2)); /* rbx is saved at CFA - 16 */
	unwind_stage_function(
		&stage, 1, MADE_PROGRAM(0x0c, 3, 24)); /* CFA = rbx + 24, as in ld.so's trampoline */
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.words[1] = STACK + 8 * 10;
	stage.words[2] = CODE + 0x110;
	stage.words[12] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	stage.sample.regs.pc = CODE + 0x110;
	stage.sample.regs.base = STACK + 8 * 10;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x110, CODE + 0x210);
	unwind_stage_finish(&stage);
}

static void each_way_to_end_has_its_name(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 1, HAS_FP);
	unwind_stage_function(
		&stage, 2, MADE_PROGRAM(0x0c, 7, 0, 0x90, 0)); /* CFA = sp, ra at CFA: sp does not move */
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE;
	EXPECT(&stage, UNWIND_ROOT, CODE); /* a return address of 0 */
	stage.words[0] = CODE + 0x110;
	stage.sample.regs.fp = STACK + 8 * WORDS;
	EXPECT(&stage, UNWIND_CUT, CODE, CODE + 0x110);
	stage.sample.regs.fp = STACK + 8 * (WORDS - 1); /* half of the frame */
	EXPECT(&stage, UNWIND_CUT, CODE, CODE + 0x110);
	stage.sample.regs.fp = STACK - 0x1000; /* below the stack's top nothing is saved */
	EXPECT(&stage, UNWIND_BAD, CODE, CODE + 0x110);
	stage.sample.regs.fp = 0xdead000000000000;
	EXPECT(&stage, UNWIND_BAD, CODE, CODE + 0x110);
	stage.words[0] = STACK; /* a return address that is no code */
	EXPECT(&stage, UNWIND_BAD, CODE);
	stage.words[0] = stage.words[1] = CODE + 0x210;
	EXPECT(&stage, UNWIND_LOOP, CODE, CODE + 0x210);
	stage.sample.regs.pc =
		0x1234; /* a jump into nothing: the frame is told, its caller is not known */
	EXPECT(&stage, UNWIND_NO_RULE, 0x1234);
	for (size_t i = 0; i < WORDS; i++) {
		stage.words[i] = CODE + 0x10;
	}
	stage.sample.regs.pc = CODE;
	unwind_walk(stage.unwinder, &stage.space, &stage.sample, &stage.stack);
	assert_int_equal(stage.stack.count, DEPTH);
	assert_int_equal(stage.stack.end, UNWIND_DEPTH);
	stage.stack.capacity = 0;
	unwind_walk(stage.unwinder, &stage.space, &stage.sample, &stage.stack);
	assert_int_equal(stage.stack.count, 0);
	assert_int_equal(stage.stack.end, UNWIND_DEPTH);
	unwind_stage_finish(&stage);
}

static void a_signal_leads_to_the_instruction_that_it_interrupted(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_LEAF);
	unwind_stage_function(&stage, 2, IS_ROOT);
	unwind_stage_function(&stage, 3, MADE_PROGRAM(0x0c, 7, 16));
	size_t cie = made_cie(&stage.made.frames, false, "zRS", "\x1b", 1, MADE_PROGRAM(0));
	/* CFA = *(sp + 24), ra at sp + 32, fp at sp + 16, as glibc says it of the kernel's frame; from one byte before */
	made_fde(&stage.made.frames, cie, MADE_CODE + 0x1ff0 - 1, 9,
		MADE_PROGRAM(0x0f, 3, 0x77, 24, 6, 0x10, 16, 2, 0x77, 32, 0x10, 6, 2, 0x77, 16));
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.words[0] = CODE + 0x1ff0;
	stage.words[1 + 2] = 55;
	stage.words[1 + 3] = STACK + 8 * 20;
	stage.words[1 + 4] =
		CODE + 0x300; /* the first instruction of function 3: no call is before it */
	stage.words[21] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x1ff0, CODE + 0x300, CODE + 0x210);
	assert_memory_equal(stage.kinds, ((uint8_t[]){1, 0, 1, 0}), 4);
	/* interrupted on another stack, of which there is no copy */
	stage.words[1 + 3] = 0x7f1234567000;
	EXPECT(&stage, UNWIND_CUT, CODE + 0x10, CODE + 0x1ff0, CODE + 0x300);
	unwind_stage_finish(&stage);
}

static void on_aarch64_lr_has_the_caller_of_a_leaf_only(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_aarch64);
	stage.made.frames.len = 0;
	/* return address column 30 */
	made_cie(&stage.made.frames, false, "zR", "\x1b", 1, MADE_PROGRAM(0x0c, 31, 0));
	stage.made.frames.data[8 + 1 + 3 + 2] = 30;
	unwind_stage_function(&stage, 0, MADE_PROGRAM(0));
	unwind_stage_function(
		&stage, 1, MADE_PROGRAM(0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x2d)); /* signed */
	unwind_stage_function(&stage, 2, MADE_PROGRAM(0x07, 30));
	unwind_stage_map(&stage);
	stage.sample.regs =
		(struct unwind_regs){.pc = CODE + 0x10, .sp = STACK, .fp = 9, .lr = CODE + 0x110};
	stage.words[0] = STACK + 8 * 10;
	stage.words[1] = 0x3c00000000000000 | (CODE + 0x210);
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	/* who has called cannot have its return address in lr */
	stage.words[1] = CODE + 0x20;
	EXPECT(&stage, UNWIND_BAD, CODE + 0x10, CODE + 0x110, CODE + 0x20);
	unwind_stage_finish(&stage);
}

static void code_that_changes_is_looked_at_again(void **state)
{
	(void)state;
	struct unwind_stage stage;

	unwind_stage_begin(&stage, &unwind_machine_x86_64);
	unwind_stage_function(&stage, 0, IS_ROOT);
	unwind_stage_map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10);
	assert_true(unwind_space_remove(&stage.space, CODE, 0x1000));
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10);
	stage.made.frames.len = 0;
	unwind_stage_function(&stage, 0, MADE_PROGRAM(0x0e, 16));
	unwind_stage_map(&stage);
	stage.words[1] = JIT + 8;
	stage.sample.regs.fp = 3;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 8);
	unwind_stage_finish(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_goes_from_the_leaf_to_the_root),
		cmocka_unit_test(a_call_that_is_the_last_of_its_function_belongs_to_it),
		cmocka_unit_test(in_an_epilogue_the_frame_pointer_is_back_already),
		cmocka_unit_test(a_row_that_lags_behind_a_realigned_frame_s_end_is_seen_through),
		cmocka_unit_test(a_frame_pointer_that_is_lost_ends_only_walks_that_need_it),
		cmocka_unit_test(code_without_information_is_left_by_its_frame_pointer),
		cmocka_unit_test(frame_pointers_can_be_left_out_of_it),
		cmocka_unit_test(what_is_not_understood_is_no_rule_and_not_left_by_guessing),
		cmocka_unit_test(a_frame_that_is_counted_from_a_saved_register_is_left),
		cmocka_unit_test(each_way_to_end_has_its_name),
		cmocka_unit_test(a_signal_leads_to_the_instruction_that_it_interrupted),
		cmocka_unit_test(on_aarch64_lr_has_the_caller_of_a_leaf_only),
		cmocka_unit_test(code_that_changes_is_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
