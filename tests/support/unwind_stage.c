#include "support/unwind_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

uint8_t unwind_stage_bytes[MADE_BYTES];

void unwind_stage_begin(struct unwind_stage *stage, const struct unwind_machine *machine)
{
	*stage = (struct unwind_stage){.unwinder = unwinder_create(machine)};
	assert_non_null(stage->unwinder);
	stage->made.machine = machine->image == IMAGE_MACHINE_X86_64 ? EM_X86_64 : EM_AARCH64;
	unwind_space_init(&stage->space, unwinder_states(stage->unwinder));
	stage->sample.regs.sp = STACK;
	stage->sample.memory =
		(struct unwind_memory){(const uint8_t *)stage->words, STACK, sizeof(stage->words)};
	stage->stack = (struct unwind_stack){
		.addresses = stage->addresses, .kinds = stage->kinds, .capacity = DEPTH};
}

void unwind_stage_finish(struct unwind_stage *stage)
{
	unwind_space_finish(&stage->space);
	unwinder_destroy(stage->unwinder);
	made_image_finish(&stage->made);
}

void unwind_stage_function(
	struct unwind_stage *stage, uint64_t number, const uint8_t *program, size_t len)
{
	if (stage->made.frames.len == 0) {
		stage->cie = made_plain_cie(&stage->made.frames);
	}
	made_fde(&stage->made.frames, stage->cie, MADE_CODE + 0x100 * number, 0x100, program, len);
}

void unwind_stage_map(struct unwind_stage *stage)
{
	struct error err = {0};

	made_image_write(&stage->made, unwind_stage_bytes);
	struct image *image = image_open_memory(unwind_stage_bytes, sizeof(unwind_stage_bytes), &err);
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

void unwind_stage_expect(
	struct unwind_stage *stage, enum unwind_end end, size_t count, const uint64_t *wanted)
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
