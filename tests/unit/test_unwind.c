#include "unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/made_image.h"

#define BASE  0x7f0000000000 /* where the image's address 0 is */
#define CODE  (BASE + MADE_CODE)
#define JIT   0x7e0000000000
#define STACK 0x7ffc00000000
#define WORDS 128
#define DEPTH 16

static uint8_t bytes[MADE_BYTES];

/* A stack of words, an image of functions of 0x100 bytes each (function n at CODE + n * 0x100), and a JIT's code. */
struct stage {
	struct made_image made;
	struct unwinder *unwinder;
	struct unwind_space space;
	size_t cie;
	uint64_t words[WORDS], addresses[DEPTH];
	uint8_t kinds[DEPTH];
	struct unwind_sample sample;
	struct unwind_stack stack;
};

static void begin(struct stage *stage, const struct unwind_machine *machine)
{
	*stage = (struct stage){.unwinder = unwinder_create(machine)};
	assert_non_null(stage->unwinder);
	stage->made.machine = machine->image == IMAGE_MACHINE_X86_64 ? EM_X86_64 : EM_AARCH64;
	unwind_space_init(&stage->space, unwinder_states(stage->unwinder));
	stage->sample.regs.sp = STACK;
	stage->sample.memory =
		(struct unwind_memory){(const uint8_t *)stage->words, STACK, sizeof(stage->words)};
	stage->stack = (struct unwind_stack){
		.addresses = stage->addresses, .kinds = stage->kinds, .capacity = DEPTH};
}

static void finish(struct stage *stage)
{
	unwind_space_finish(&stage->space);
	unwinder_destroy(stage->unwinder);
	made_image_finish(&stage->made);
}

static void function(struct stage *stage, uint64_t number, const uint8_t *program, size_t len)
{
	if (stage->made.frames.len == 0) {
		stage->cie = made_plain_cie(&stage->made.frames);
	}
	made_fde(&stage->made.frames, stage->cie, MADE_CODE + 0x100 * number, 0x100, program, len);
}

static void map(struct stage *stage)
{
	struct error err = {0};

	made_image_write(&stage->made, bytes);
	struct image *image = image_open_memory(bytes, sizeof(bytes), &err);
	struct cfi *cfi = cfi_create(image, unwinder_reader(stage->unwinder));
	const struct unwind_mapping code = {.start = CODE,
									.length = MADE_CODE_BYTES,
									.file_offset = MADE_CODE,
									.is_executable = true,
									.cfi = cfi},
								jit = {.start = JIT, .length = 0x10000, .is_executable = true};

	assert_true(unwind_space_put(&stage->space, &code) && unwind_space_put(&stage->space, &jit));
	cfi_release(cfi);
	image_release(image);
}

/* Walks and compares; count addresses. The second walk finds its rules in the cache. */
static void expect(struct stage *stage, enum unwind_end end, size_t count, const uint64_t *wanted)
{
	for (int round = 0; round < 2; round++) {
		unwind_walk(stage->unwinder, &stage->space, &stage->sample, &stage->stack);
		assert_int_equal(stage->stack.end, end);
		assert_int_equal(stage->stack.count, count);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(stage->addresses[i], wanted[i]);
		}
	}
}

#define EXPECT(stage, end, ...)                                                                    \
	expect((stage), (end), sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),                   \
		(const uint64_t[]){__VA_ARGS__})

#define SAVES_FP MADE_PROGRAM(0x0c, 7, 16, 0x86, 2) /* CFA = sp+16, fp at CFA-16 */
#define HAS_FP   MADE_PROGRAM(0x0c, 6, 16, 0x86, 2) /* CFA = fp+16, fp at CFA-16 */
#define IS_LEAF  MADE_PROGRAM(0)                    /* CFA = sp+8 */
#define IS_ROOT  MADE_PROGRAM(0x07, 16)             /* ra undefined */

static void a_walk_goes_from_the_leaf_to_the_root(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 1, SAVES_FP);
	function(&stage, 2, HAS_FP);
	function(&stage, 3, IS_ROOT);
	map(&stage);
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
	finish(&stage);
}

static void a_call_that_is_the_last_of_its_function_belongs_to_it(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, SAVES_FP);
	function(&stage, 1, IS_ROOT);
	function(&stage, 2, IS_LEAF);
	map(&stage);
	stage.sample.regs.pc = CODE + 0x200; /* its first instruction, not the end of function 1 */
	stage.words[0] = CODE + 0x100;       /* behind the last instruction of function 0 */
	stage.words[1] = 5;
	stage.words[2] = CODE + 0x180;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x200, CODE + 0x100, CODE + 0x180);
	finish(&stage);
}

static void in_an_epilogue_the_frame_pointer_is_back_already(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	/* the row behind "pop rbp": CFA = sp + 8, and rbp is still said to be at CFA - 16 */
	function(&stage, 0, MADE_PROGRAM(0x86, 2));
	function(&stage, 1, HAS_FP);
	function(&stage, 2, IS_ROOT);
	map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.sample.regs.fp = STACK + 8 * 4;
	stage.words[0] = CODE + 0x110;
	stage.words[5] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	finish(&stage);
}

static void a_row_that_lags_behind_a_realigned_frame_s_end_is_seen_through(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	/* gcc: "pop %rbp; lea -8(%r10),%rsp; ret": CFA = r10, then sp + 8, and rbp is still said to be at *(rbp) */
	function(&stage, 0, MADE_PROGRAM(0x10, 6, 2, 0x76, 0, 0x0c, 10, 0, 0x44, 0x0c, 7, 8));
	function(&stage, 1, HAS_FP);
	function(&stage, 2, IS_ROOT);
	map(&stage);
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
	finish(&stage);
}

static void a_frame_pointer_that_is_lost_ends_only_walks_that_need_it(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, MADE_PROGRAM(0x11, 6, 0x80, 0x40)); /* far above the copy */
	function(&stage, 1, IS_LEAF);
	function(&stage, 2, HAS_FP);
	map(&stage);
	stage.sample.regs.pc = CODE;
	stage.words[0] = CODE + 0x110;
	EXPECT(&stage, UNWIND_ROOT, CODE, CODE + 0x110);
	stage.words[1] = CODE + 0x210;
	EXPECT(&stage, UNWIND_NO_RULE, CODE, CODE + 0x110, CODE + 0x210);
	finish(&stage);
}

static void code_without_information_is_left_by_its_frame_pointer(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 1, HAS_FP);
	function(&stage, 2, IS_ROOT);
	map(&stage);
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
	finish(&stage);
}

/* What stands before the address in the image, and whether a function without information that has frame pointers can have been called from there. */
static void check_call(
	const struct unwind_machine *machine, const uint8_t *code, size_t len, bool is_call)
{
	struct stage stage;

	begin(&stage, machine);
	function(&stage, 1, IS_ROOT);
	map(&stage);
	memcpy(bytes + MADE_CODE + 0x180 - len, code, len);
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
	finish(&stage);
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
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 2, IS_LEAF);
	map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.words[0] =
		CODE + 0x200; /* function 2 begins there, and nothing is known of what is before it */
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x200);
	stage.words[0] = CODE + 0x1f0;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, CODE + 0x1f0);
	finish(&stage);
	/* But behind a call that is the last of a function without information the caller is that function. */
	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 2, IS_LEAF);
	map(&stage);
	memcpy(bytes + MADE_CODE + 0x200 - 5, (const uint8_t[]){0xe8, 0, 1, 0, 0}, 5);
	stage.words[0] = CODE + 0x200;
	stage.sample.regs.pc = CODE + 0x10;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, CODE + 0x200);
	finish(&stage);
}

static void frame_pointers_can_be_left_out_of_it(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	unwinder_use_frame_pointers(stage.unwinder, false);
	function(&stage, 0, IS_LEAF);
	function(&stage, 1, HAS_FP);
	function(&stage, 2, IS_ROOT);
	map(&stage);
	stage.sample.regs = (struct unwind_regs){.pc = CODE + 0x10, .sp = STACK, .fp = STACK + 8 * 3};
	stage.words[3] = STACK + 8 * 8;
	stage.words[4] = CODE + 0x210;
	stage.words[9] = CODE + 0x210;
	/* a frame pointer that a row asks for is another matter */
	stage.words[0] = CODE + 0x110;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	stage.words[0] = JIT + 0x40;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 0x40);
	finish(&stage);
}

static void what_is_not_understood_is_no_rule_and_not_left_by_guessing(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, MADE_PROGRAM(0x3f));          /* no instruction */
	function(&stage, 1, MADE_PROGRAM(0x0b));          /* restores what was not remembered */
	function(&stage, 2, MADE_PROGRAM(0x0c, 10, 0));   /* CFA = r10 */
	function(&stage, 3, MADE_PROGRAM(0x0f, 1, 0x22)); /* CFA = + of nothing */
	map(&stage);
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
	finish(&stage);
}

static void a_frame_that_is_counted_from_a_saved_register_is_left(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, MADE_PROGRAM(0x0e, 24, 0x83, 2)); /* rbx is saved at CFA - 16 */
	function(&stage, 1, MADE_PROGRAM(0x0c, 3, 24)); /* CFA = rbx + 24, as in ld.so's trampoline */
	function(&stage, 2, IS_ROOT);
	map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	stage.words[1] = STACK + 8 * 10;
	stage.words[2] = CODE + 0x110;
	stage.words[12] = CODE + 0x210;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	stage.sample.regs.pc = CODE + 0x110;
	stage.sample.regs.base = STACK + 8 * 10;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x110, CODE + 0x210);
	finish(&stage);
}

static void each_way_to_end_has_its_name(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 1, HAS_FP);
	function(
		&stage, 2, MADE_PROGRAM(0x0c, 7, 0, 0x90, 0)); /* CFA = sp, ra at CFA: sp does not move */
	map(&stage);
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
	finish(&stage);
}

static void a_signal_leads_to_the_instruction_that_it_interrupted(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_LEAF);
	function(&stage, 2, IS_ROOT);
	function(&stage, 3, MADE_PROGRAM(0x0c, 7, 16));
	size_t cie = made_cie(&stage.made.frames, false, "zRS", "\x1b", 1, MADE_PROGRAM(0));
	/* CFA = *(sp + 24), ra at sp + 32, fp at sp + 16, as glibc says it of the kernel's frame; from one byte before */
	made_fde(&stage.made.frames, cie, MADE_CODE + 0x1ff0 - 1, 9,
		MADE_PROGRAM(0x0f, 3, 0x77, 24, 6, 0x10, 16, 2, 0x77, 32, 0x10, 6, 2, 0x77, 16));
	map(&stage);
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
	finish(&stage);
}

static void save(struct stage *stage, uint16_t offset, uint64_t value)
{
	memcpy((uint8_t *)stage->words + offset, &value, sizeof(value));
}

/* A trampoline without information (musl's), of either machine: at sp what the kernel saved, each register at its offset. */
static void check_trampoline(const struct unwind_machine *machine)
{
	struct stage stage;

	begin(&stage, machine);
	function(&stage, 0, HAS_FP);
	function(&stage, 1, IS_ROOT);
	map(&stage);
	memcpy(bytes + MADE_CODE + 0x1000, machine->signal_code, machine->signal_code_bytes);
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
	finish(&stage);
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
	struct stage stage;

	begin(&stage, machine);
	function(&stage, 1, IS_ROOT);
	map(&stage);
	memcpy(bytes + MADE_CODE + 0x1000, code, 16);
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
	finish(&stage);
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

static void on_aarch64_lr_has_the_caller_of_a_leaf_only(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_aarch64);
	stage.made.frames.len = 0;
	/* return address column 30 */
	made_cie(&stage.made.frames, false, "zR", "\x1b", 1, MADE_PROGRAM(0x0c, 31, 0));
	stage.made.frames.data[8 + 1 + 3 + 2] = 30;
	function(&stage, 0, MADE_PROGRAM(0));
	function(&stage, 1, MADE_PROGRAM(0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x2d)); /* signed */
	function(&stage, 2, MADE_PROGRAM(0x07, 30));
	map(&stage);
	stage.sample.regs =
		(struct unwind_regs){.pc = CODE + 0x10, .sp = STACK, .fp = 9, .lr = CODE + 0x110};
	stage.words[0] = STACK + 8 * 10;
	stage.words[1] = 0x3c00000000000000 | (CODE + 0x210);
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10, CODE + 0x110, CODE + 0x210);
	/* who has called cannot have its return address in lr */
	stage.words[1] = CODE + 0x20;
	EXPECT(&stage, UNWIND_BAD, CODE + 0x10, CODE + 0x110, CODE + 0x20);
	finish(&stage);
}

static void code_that_changes_is_looked_at_again(void **state)
{
	(void)state;
	struct stage stage;

	begin(&stage, &unwind_machine_x86_64);
	function(&stage, 0, IS_ROOT);
	map(&stage);
	stage.sample.regs.pc = CODE + 0x10;
	EXPECT(&stage, UNWIND_ROOT, CODE + 0x10);
	assert_true(unwind_space_remove(&stage.space, CODE, 0x1000));
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10);
	stage.made.frames.len = 0;
	function(&stage, 0, MADE_PROGRAM(0x0e, 16));
	map(&stage);
	stage.words[1] = JIT + 8;
	stage.sample.regs.fp = 3;
	EXPECT(&stage, UNWIND_NO_RULE, CODE + 0x10, JIT + 8);
	finish(&stage);
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
		cmocka_unit_test(without_information_only_behind_a_call_is_a_caller),
		cmocka_unit_test(a_return_address_that_was_put_there_is_the_root),
		cmocka_unit_test(frame_pointers_can_be_left_out_of_it),
		cmocka_unit_test(what_is_not_understood_is_no_rule_and_not_left_by_guessing),
		cmocka_unit_test(a_frame_that_is_counted_from_a_saved_register_is_left),
		cmocka_unit_test(each_way_to_end_has_its_name),
		cmocka_unit_test(a_signal_leads_to_the_instruction_that_it_interrupted),
		cmocka_unit_test(a_trampoline_is_known_by_its_instructions),
		cmocka_unit_test(entries_of_linkage_tables_are_known_by_their_instructions),
		cmocka_unit_test(on_aarch64_lr_has_the_caller_of_a_leaf_only),
		cmocka_unit_test(code_that_changes_is_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
