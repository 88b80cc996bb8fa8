#include "capture/sample_stacks.h"

#include <stdlib.h>

#include "capture/mappings.h"
#include "capture/stack_record.h"
#include "capture/stacks.h"
#include "capture/unwinding.h"
#include "profile/journal.h"

struct sample_stacks {
	struct stacks *stacks;
	struct mappings mappings;
	bool is_in_doubt;            /* about mappings */
	struct unwinding *unwinding; /* NULL: samples hold frames */
	bool kernel_frames;
	uint32_t mark;
	struct stack_record record;
};

struct sample_stacks *sample_stacks_create(
	const struct sample_stacks_options *options, struct error *err)
{
	struct sample_stacks *stacks = calloc(1, sizeof(*stacks));
	struct error unwinding_err = {0};
	if (stacks == NULL || (stacks->stacks = stacks_create()) == NULL) {
		goto fail;
	}
	stacks->record.writer = options->writer;
	stacks->kernel_frames = options->kernel_frames;
	stacks->mark = options->mark;
	if (options->unwind != SAMPLE_UNWIND_FP) {
		const struct unwinding_options unwinding = {
			.codes = options->codes,
			.max_frames = options->max_frames,
			.no_frame_pointers = options->unwind == SAMPLE_UNWIND_DWARF,
			.stitches = options->mark != 0,
		};
		stacks->unwinding = unwinding_create(&unwinding, &unwinding_err);
	}
	if (unwinding_err.code != ERROR_LIMIT_EXCEEDED) {
		return stacks;
	}

fail:
	sample_stacks_destroy(stacks);
	error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a capture's stacks");
	return NULL;
}

void sample_stacks_destroy(struct sample_stacks *stacks)
{
	if (stacks == NULL) {
		return;
	}
	stacks_destroy(stacks->stacks);
	unwinding_destroy(stacks->unwinding);
	mappings_finish(&stacks->mappings);
	free(stacks);
}

bool sample_stacks_unwinds(const struct sample_stacks *stacks)
{
	return stacks->unwinding != NULL;
}

bool sample_stacks_want_more(const struct sample_stacks *stacks)
{
	return stacks->unwinding != NULL && unwinding_wants_more(stacks->unwinding);
}

void sample_stacks_exec(struct sample_stacks *stacks)
{
	mappings_clear(&stacks->mappings);
	stacks_forget(stacks->stacks);
	if (stacks->unwinding != NULL) {
		unwinding_exec(stacks->unwinding);
	}
}

void sample_stacks_doubt(struct sample_stacks *stacks)
{
	stacks->is_in_doubt = true;
}

void sample_stacks_map(struct sample_stacks *stacks, const struct sampler_mapping *mapping,
	uint32_t image, uint64_t kind, int fd)
{
	/* Code that is generated in place stays what it is when its pages are protected again, whatever their offset. */
	const struct mappings_range range = {
		.start = mapping->start,
		.end = mapping->start + mapping->length,
		.image = image,
		.bias = kind == JOURNAL_IMAGE_ANONYMOUS ? 0 : mapping->start - mapping->file_offset,
	};
	bool has_changed = mappings_put(&stacks->mappings, &range);
	if (has_changed) {
		stacks_forget(stacks->stacks);
	}
	if (stacks->unwinding == NULL) {
		return;
	}
	if (has_changed) {
		unwinding_forget(stacks->unwinding);
	}
	unwinding_map(stacks->unwinding, mapping, image, kind, fd);
}

/*
 * Where code keeps something else in the frame pointer, the kernel follows whatever is there. A return address points
 * behind a call, so it lies in code: from the first that does not, all is invented.
 */
static void cut_invented(const struct sample_stacks *stacks, struct stacks_key *key)
{
	for (size_t i = 1; !stacks->is_in_doubt && i < key->user_count; i++) {
		if (!mappings_has(&stacks->mappings, key->user_frames[i] - 1)) {
			key->user_count = i;
			key->end = JOURNAL_STACK_BROKEN;
			return;
		}
	}
}

static struct sample_stack take_unwound(
	struct sample_stacks *stacks, struct stacks_key *key, const struct sampler_sample *sample)
{
	struct unwinding_stack stack;
	const uint64_t *frames = NULL;
	unwinding_walk(stacks->unwinding, sample, &stack);
	bool is_stitched = stack.stitched_from < stack.count;
	key->end = stack.end;
	key->user_frames = stack.frames;
	key->user_count = stack.count;
	struct sample_stack taken = {
		.is_cut =
			!is_stitched && (stack.end == JOURNAL_STACK_COPY || stack.end == JOURNAL_STACK_DEPTH),
	};
	size_t all = key->kernel_count + key->user_count;
	/* Of a thread that was in the kernel and has no user frames either, there is nothing to say. */
	if (all == 0 || all + 1 > STACK_RECORD_FRAMES) {
		return taken;
	}
	taken.id = stacks_id(stacks->stacks, key, &frames);
	taken.is_new = frames != NULL;
	if (taken.is_new) {
		stack_record_append(&stacks->record, taken.id, key, frames, &stack, stacks->mark);
		unwinding_learn(stacks->unwinding, &stack);
	}
	return taken;
}

static struct sample_stack take_followed(
	struct sample_stacks *stacks, struct stacks_key *key, const struct sampler_sample *sample)
{
	const uint64_t *frames = NULL;
	size_t all = key->kernel_count + sample->user_count;
	struct sample_stack taken = {.is_cut = sample->cut};
	key->end = sample->cut              ? JOURNAL_STACK_DEPTH
			   : sample->user_count > 0 ? JOURNAL_STACK_UNKNOWN
										: JOURNAL_STACK_NONE;
	key->user_frames = sample->user_frames;
	key->user_count = sample->user_count;
	if (all == 0 || all > STACK_RECORD_FRAMES) {
		return taken;
	}
	taken.id = stacks_id(stacks->stacks, key, &frames);
	taken.is_new = frames != NULL;
	if (taken.is_new) {
		cut_invented(stacks, key);
		stack_record_append(&stacks->record, taken.id, key, frames, NULL, 0);
	}
	return taken;
}

struct sample_stack sample_stacks_take(
	struct sample_stacks *stacks, const struct sampler_sample *sample)
{
	struct stacks_key key = {
		.pid = sample->pid,
		.kernel_frames = sample->kernel_frames,
		.kernel_count = stacks->kernel_frames ? sample->kernel_count : 0,
	};
	/* Frames all the same: this kernel copies no stacks. */
	return stacks->unwinding != NULL && sample->user_count == 0
			   ? take_unwound(stacks, &key, sample)
			   : take_followed(stacks, &key, sample);
}
