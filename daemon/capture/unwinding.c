#include "capture/unwinding.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "capture/stitches.h"
#include "profile/journal.h"
#include "target/target.h"
#include "unwind/space.h"
#include "unwind/unwind.h"

/*
 * More is copied when so large a part of the last stacks, of so many at least, was cut: 2 %. Of the last ones, as a program may have run for hours
 * before it comes to where its stacks are long: behind WINDOW stacks each counts half.
 */
#define CUT_ONE_IN   50
#define CUT_AT_LEAST 5
#define WINDOW       512

struct known_image {
	struct cfi *cfi; /* codes_put; NULL: none */
	bool was_asked;
};

struct unwinding {
	struct codes *codes; /* reference */
	const struct unwind_machine *machine;
	struct unwinder *unwinder;
	struct unwind_space space;
	VEC(struct known_image) images; /* by id - 1 */
	struct unwind_stack stack;
	struct stitches *stitches; /* NULL: off */
	unsigned stacks;           /* of the window */
	unsigned short_copies;     /* of these that were cut where the copy has its greatest size */
	bool wants_more;
};

/* Of the code that every process of this machine has. */
static const struct unwind_machine *native_machine(void)
{
	struct image *vdso = image_open_vdso(NULL);
	enum image_machine machine = vdso != NULL ? image_facts(vdso)->machine : IMAGE_MACHINE_OTHER;
	image_release(vdso);
	return machine == IMAGE_MACHINE_X86_64    ? &unwind_machine_x86_64
		   : machine == IMAGE_MACHINE_AARCH64 ? &unwind_machine_aarch64
											  : NULL;
}

struct unwinding *unwinding_create(const struct unwinding_options *options, struct error *err)
{
	const struct unwind_machine *machine = native_machine();
	struct unwinding *unwinding = calloc(1, sizeof(*unwinding));
	if (machine == NULL) {
		free(unwinding);
		error_set(err, ERROR_UNSUPPORTED,
			"stacks of this machine can only be followed by frame pointers");
		return NULL;
	}
	if (unwinding == NULL || (unwinding->unwinder = unwinder_create(machine)) == NULL) {
		goto fail;
	}
	unwinding->codes = codes_ref(options->codes);
	unwinding->machine = machine;
	unwinder_use_frame_pointers(unwinding->unwinder, !options->no_frame_pointers);
	unwind_space_init(&unwinding->space, unwinder_states(unwinding->unwinder));
	unwinding->stack.capacity =
		options->max_frames != 0 ? options->max_frames : UNWINDING_FRAMES_DEFAULT;
	unwinding->stack.addresses =
		calloc(unwinding->stack.capacity, sizeof(*unwinding->stack.addresses));
	unwinding->stack.kinds = calloc(unwinding->stack.capacity, 1);
	unwinding->stitches = options->stitches ? stitches_create() : NULL;
	unwinding->stack.sps =
		options->stitches ? calloc(unwinding->stack.capacity, sizeof(*unwinding->stack.sps)) : NULL;
	if (unwinding->stack.addresses != NULL && unwinding->stack.kinds != NULL &&
		(!options->stitches || (unwinding->stitches != NULL && unwinding->stack.sps != NULL))) {
		return unwinding;
	}

fail:
	unwinding_destroy(unwinding);
	error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to unwind stacks");
	return NULL;
}

void unwinding_destroy(struct unwinding *unwinding)
{
	if (unwinding == NULL) {
		return;
	}
	unwind_space_finish(&unwinding->space);
	for (size_t i = 0; i < unwinding->images.len; i++) {
		codes_put(unwinding->codes, unwinding->images.items[i].cfi);
	}
	VEC_FINISH(&unwinding->images);
	codes_release(unwinding->codes);
	unwinder_destroy(unwinding->unwinder);
	stitches_destroy(unwinding->stitches);
	free(unwinding->stack.addresses);
	free(unwinding->stack.kinds);
	free(unwinding->stack.sps);
	free(unwinding);
}

/* The image's code, looked for when it is first mapped. */
static struct cfi *code_of(struct unwinding *unwinding, uint32_t image, uint64_t kind, int fd)
{
	struct cfi_reader *reader = unwinder_reader(unwinding->unwinder);
	while (unwinding->images.len < image) {
		if (!VEC_PUSH(&unwinding->images, (struct known_image){0})) {
			return NULL;
		}
	}
	struct known_image *known = &unwinding->images.items[image - 1];
	if (!known->was_asked) {
		known->was_asked = true;
		known->cfi = kind == JOURNAL_IMAGE_VDSO ? codes_get_vdso(unwinding->codes, reader)
					 : fd >= 0                  ? codes_get(unwinding->codes, fd, reader)
												: NULL;
	}
	return known->cfi;
}

void unwinding_map(struct unwinding *unwinding, const struct sampler_mapping *mapping,
	uint32_t image, uint64_t kind, int fd)
{
	const struct unwind_mapping put = {
		.start = mapping->start,
		.length = mapping->length,
		.file_offset = mapping->file_offset,
		.is_executable = true,
		.cfi = code_of(unwinding, image, kind, fd),
	};
	unwind_space_put(&unwinding->space, &put);
}

void unwinding_exec(struct unwinding *unwinding)
{
	unwind_space_clear(&unwinding->space);
	unwinding_forget(unwinding);
}

static uint64_t end_of(enum unwind_end end)
{
	static const uint64_t ends[] = {
		[UNWIND_ROOT] = JOURNAL_STACK_COMPLETE,
		[UNWIND_CUT] = JOURNAL_STACK_COPY,
		[UNWIND_NO_RULE] = JOURNAL_STACK_NO_RULE,
		[UNWIND_BAD] = JOURNAL_STACK_BROKEN,
		[UNWIND_DEPTH] = JOURNAL_STACK_DEPTH,
		[UNWIND_LOOP] = JOURNAL_STACK_LOOP,
	};
	return ends[end];
}

static uint64_t known(const struct sampler_sample *sample, unsigned number)
{
	bool is_known = number < SAMPLER_REGISTERS && (sample->registers_known >> number & 1) != 0;
	return is_known ? sample->registers[number] : 0;
}

/*
 * Are these callers' return addresses in the program's memory now, where they would have to be? It went on since the sample, but its outer frames
 * change slowly; when they have changed, or it has ended, nothing is stitched. unread: where the first of them is.
 */
static bool is_in_memory(pid_t pid, uint64_t unread, const struct stitches_stack *callers)
{
	uint64_t addresses[TARGET_WORDS], words[TARGET_WORDS];
	size_t of[TARGET_WORDS], count = 0;
	for (size_t i = 0; i < callers->count && count < TARGET_WORDS; i++) {
		if (!callers->is_exact[i]) {
			of[count] = i;
			addresses[count++] = unread + (callers->sps[i] - callers->sps[0]);
		}
	}
	if (count == 0 || !target_read_words(pid, addresses, words, count)) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (words[i] != callers->frames[of[i]]) {
			return false;
		}
	}
	return true;
}

/* The callers of its outermost frame are copied behind it, when they are known and there is room. */
static void complete(struct unwinding *unwinding, pid_t pid, struct unwinding_stack *stack)
{
	struct stitches_stack callers;
	if (stack->count == 0 || unwinding->stack.kinds[stack->count - 1] == UNWIND_EXACT ||
		!stitches_find(unwinding->stitches, stack->frames[stack->count - 1], &callers) ||
		stack->count + callers.count > unwinding->stack.capacity ||
		!is_in_memory(pid, unwinding->stack.unread, &callers)) {
		return;
	}
	memcpy(unwinding->stack.addresses + stack->count, callers.frames,
		callers.count * sizeof(*callers.frames));
	memcpy(unwinding->stack.kinds + stack->count, callers.is_exact, callers.count);
	stack->count += callers.count;
}

void unwinding_learn(struct unwinding *unwinding, const struct unwinding_stack *stack)
{
	const struct stitches_stack learned = {
		.frames = stack->frames,
		.is_exact = stack->is_exact,
		.sps = unwinding->stack.sps,
		.count = stack->count,
	};
	if (unwinding->stitches != NULL && stack->end == JOURNAL_STACK_COMPLETE) {
		stitches_learn(unwinding->stitches, &learned);
	}
}

void unwinding_forget(struct unwinding *unwinding)
{
	if (unwinding->stitches != NULL) {
		stitches_forget(unwinding->stitches);
	}
}

static void count_cut(struct unwinding *unwinding, bool is_cut)
{
	unwinding->stacks++;
	unwinding->short_copies += is_cut;
	if (unwinding->short_copies >= CUT_AT_LEAST &&
		unwinding->short_copies * CUT_ONE_IN > unwinding->stacks) {
		unwinding->wants_more = true;
	}
	if (unwinding->stacks == WINDOW) {
		unwinding->stacks /= 2;
		unwinding->short_copies /= 2;
	}
}

void unwinding_walk(
	struct unwinding *unwinding, const struct sampler_sample *sample, struct unwinding_stack *stack)
{
	const struct unwind_machine *machine = unwinding->machine;
	*stack = (struct unwinding_stack){.end = JOURNAL_STACK_NONE};
	if (sample->registers == NULL) {
		return;
	}
	const struct unwind_sample where = {
		.regs =
			{
				.pc = sample->pc,
				.sp = known(sample, machine->sp),
				.fp = known(sample, machine->fp),
				.lr = known(sample, machine->lr),
				.base = known(sample, machine->base),
			},
		.others = sample->registers,
		.others_known = sample->registers_known,
		.memory = {sample->stack, known(sample, machine->sp), sample->stack_bytes},
	};
	unwind_walk(unwinding->unwinder, &unwinding->space, &where, &unwinding->stack);
	stack->frames = unwinding->stack.addresses;
	stack->is_exact = unwinding->stack.kinds;
	stack->count = unwinding->stack.count;
	stack->end = end_of(unwinding->stack.end);
	if (unwinding->stack.end == UNWIND_ROOT && unwinding->stack.guesses > 0) {
		stack->end = JOURNAL_STACK_UNKNOWN; /* the frames behind a guess may be invented */
	}
	stack->stitched_from = stack->count;
	if (unwinding->stack.end == UNWIND_CUT && unwinding->stitches != NULL) {
		complete(unwinding, sample->pid, stack);
	}
	count_cut(unwinding, unwinding->stack.end == UNWIND_CUT && !sample->stack_ended);
}

bool unwinding_wants_more(const struct unwinding *unwinding)
{
	return unwinding->wants_more;
}
