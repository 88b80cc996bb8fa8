#include "analyzer/tree/attribution.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define PROGRESS_CELLS 64

struct builder {
	struct attribution *attribution;
	const struct model *model;
	struct symbols *symbols;
	struct strings *strings;
	VEC(struct tree_frame) path;
	uint32_t *seen_by; /* per image: the last cell (from 1) that counted it */
	uint32_t cell;
};

static const char STITCHED[] = JOURNAL_STITCHED;

/* Frames below which there is nothing, under the names that the C libraries and run times give them. */
static const char *const OUTERMOST[] = {
	"_start",
	"main",
	"__libc_start_main",
	"__libc_start_call_main",
	"libc_start_main_stage2", /* musl */
	"_start_c",
	"clone",
	"__clone",
	"clone3",
	"__clone3",
	"start_thread",
	"thread_start",
	"__pthread_start",
	"ret_from_fork",
	"ret_from_fork_asm",
	"__start_context",
	"runtime.goexit",
	"runtime.goexit.abi0",
	"runtime.rt0_go",
	"runtime.rt0_go.abi0",
	"runtime.mstart",
	"runtime.mstart.abi0",
	"_dl_start_user",
	"_dl_start",
};

static bool is_text(struct bytes_text text, const char *is)
{
	return text.len == strlen(is) && memcmp(text.data, is, text.len) == 0;
}

static bool is_outermost(struct bytes_text name)
{
	for (size_t i = 0; i < sizeof(OUTERMOST) / sizeof(OUTERMOST[0]); i++) {
		if (is_text(name, OUTERMOST[i])) {
			return true;
		}
	}
	return false;
}

/* Code in a mapping that has a name but no file ("[heap]") was made at run time too. */
static uint8_t native_kind(
	const struct model *model, uint32_t process, const struct model_frame *frame)
{
	if (frame->image == MODEL_NONE) {
		return TREE_UNKNOWN;
	}
	uint64_t kind = model->images.items[frame->image].kind;

	if (model_is_program(model, process, frame->image)) {
		return TREE_PROGRAM;
	}
	return kind == JOURNAL_IMAGE_ANONYMOUS || kind == JOURNAL_IMAGE_UNKNOWN ? TREE_JIT
																			: TREE_LIBRARY;
}

static uint8_t kind_of(const struct model *model, uint32_t process, const struct model_frame *frame)
{
	switch (frame->kind) {
	case JOURNAL_FRAME_KERNEL:
		return TREE_KERNEL;
	case JOURNAL_FRAME_INTERPRETED:
		return TREE_INTERPRETED;
	case JOURNAL_FRAME_MARKER:
		return TREE_MARKER;
	default:
		return native_kind(model, process, frame);
	}
}

static void count_frame(
	struct builder *builder, const struct model_frame *frame, bool is_named, uint64_t samples)
{
	struct attribution *attribution = builder->attribution;

	if (frame->kind != JOURNAL_FRAME_NATIVE) {
		return;
	}
	attribution->frames += samples;
	attribution->unnamed += is_named ? 0 : samples;
	if (frame->image == MODEL_NONE) {
		return;
	}
	struct attribution_image *image = &attribution->images[frame->image];

	image->frames += samples;
	image->unnamed += is_named ? 0 : samples;
	if (builder->seen_by[frame->image] != builder->cell) {
		builder->seen_by[frame->image] = builder->cell;
		image->samples += samples;
	}
}

static bool push_thread(struct builder *builder, const struct model_thread *thread)
{
	struct tree_frame frame = {model_thread_name(builder->model, thread), 0, TREE_THREAD};

	if (strings_text(builder->strings, frame.name).len == 0) {
		frame.name = strings_intern(builder->strings, "[unknown]", 9, NULL);
	}
	builder->path.len = 0;
	return frame.name != 0 && VEC_PUSH(&builder->path, frame);
}

static bool push_nothing(struct builder *builder)
{
	static const char name[] = "[no user stack]";
	const struct tree_frame frame = {
		strings_intern(builder->strings, name, sizeof(name) - 1, NULL), 0, TREE_MARKER};

	return frame.name != 0 && VEC_PUSH(&builder->path, frame);
}

static bool push_frames(struct builder *builder, const struct model_cell *cell, bool *is_stitched)
{
	const struct model_stack *stack = &builder->model->stacks.items[cell->stack];
	uint32_t process = builder->model->threads.items[cell->thread].process;

	for (size_t i = stack->count; i-- > 0;) {
		const struct model_frame *frame = &builder->model->frames.items[stack->first + i];
		struct symbol symbol;

		if (!symbols_find(builder->symbols, frame, &symbol)) {
			return false;
		}
		const struct tree_frame item = {
			symbol.name, symbol.image, kind_of(builder->model, process, frame)};

		count_frame(builder, frame, symbol.is_named, cell->count);
		*is_stitched |= item.kind == TREE_MARKER &&
						is_text(strings_text(builder->strings, symbol.name), STITCHED);
		if (!VEC_PUSH(&builder->path, item)) {
			return false;
		}
	}
	return true;
}

static void count_self(struct builder *builder, const struct model_stack *stack, uint64_t samples)
{
	struct attribution_elsewhere *elsewhere = &builder->attribution->elsewhere;
	const struct model_frame *leaf =
		stack->count == 0 ? NULL : &builder->model->frames.items[stack->first];

	if (leaf == NULL) {
		elsewhere->nowhere += samples;
	} else if (leaf->kind == JOURNAL_FRAME_KERNEL) {
		elsewhere->kernel += samples;
	} else if (leaf->kind != JOURNAL_FRAME_NATIVE) {
		elsewhere->other += samples;
	} else if (leaf->image == MODEL_NONE) {
		elsewhere->unmapped += samples;
	} else {
		builder->attribution->images[leaf->image].self += samples;
	}
}

/* The image of a stack's outermost frame, NULL: it is in none. */
static struct attribution_image *outermost_image(
	const struct builder *builder, const struct model_stack *stack)
{
	if (stack->count == 0) {
		return NULL;
	}
	uint32_t image = builder->model->frames.items[stack->first + stack->count - 1].image;

	return image == MODEL_NONE ? NULL : &builder->attribution->images[image];
}

/* Which of an image's counts a stack belongs to. */
enum reach { REACH_COMPLETE, REACH_STITCHED, REACH_TRUNCATED, REACH_OPEN };

static void count_reach_of(struct attribution_image *image, enum reach reach, uint64_t samples)
{
	image->complete += reach == REACH_COMPLETE ? samples : 0;
	image->stitched += reach == REACH_STITCHED ? samples : 0;
	image->truncated += reach == REACH_TRUNCATED ? samples : 0;
}

/* Once in each image that has a frame of it. */
static void count_reach(
	struct builder *builder, const struct model_stack *stack, enum reach reach, uint64_t samples)
{
	struct attribution *attribution = builder->attribution;

	builder->cell++;
	for (size_t i = 0; i < stack->count; i++) {
		uint32_t image = builder->model->frames.items[stack->first + i].image;

		if (image != MODEL_NONE && builder->seen_by[image] != builder->cell) {
			builder->seen_by[image] = builder->cell;
			count_reach_of(&attribution->images[image], reach, samples);
		}
	}
	attribution->complete += reach == REACH_COMPLETE ? samples : 0;
	attribution->stitched += reach == REACH_STITCHED ? samples : 0;
	attribution->truncated += reach == REACH_TRUNCATED ? samples : 0;
	attribution->open += reach == REACH_OPEN ? samples : 0;
}

/* path[1] is the outermost frame. */
static enum reach reach_of(const struct builder *builder, uint64_t end, bool is_stitched)
{
	struct bytes_text outermost = strings_text(builder->strings, builder->path.items[1].name);
	bool may_be_all = end == JOURNAL_STACK_UNKNOWN || end == JOURNAL_STACK_NO_RULE;

	if (is_stitched) {
		return REACH_STITCHED;
	}
	if (end == JOURNAL_STACK_COMPLETE || (may_be_all && is_outermost(outermost))) {
		return REACH_COMPLETE;
	}
	return end == JOURNAL_STACK_UNKNOWN ? REACH_OPEN : REACH_TRUNCATED;
}

static void count_end(
	struct builder *builder, const struct model_stack *stack, uint64_t samples, bool is_stitched)
{
	struct attribution *attribution = builder->attribution;
	uint64_t end = stack->end < JOURNAL_STACK_ENDS ? stack->end : JOURNAL_STACK_BROKEN;
	enum reach reach = reach_of(builder, end, is_stitched);
	struct attribution_image *image = outermost_image(builder, stack);

	attribution->samples += samples;
	attribution->ends[end] += samples;
	count_reach(builder, stack, reach, samples);
	if (reach == REACH_COMPLETE || reach == REACH_STITCHED) {
		return;
	}
	attribution->faults[end] += samples;
	if (image != NULL) {
		image->open += end == JOURNAL_STACK_UNKNOWN ? samples : 0;
		image->broken += end == JOURNAL_STACK_BROKEN || end == JOURNAL_STACK_LOOP ? samples : 0;
		image->unruled += end == JOURNAL_STACK_NO_RULE ? samples : 0;
	}
}

static bool add_cell(struct builder *builder, const struct model_cell *cell)
{
	const struct model_stack *stack = &builder->model->stacks.items[cell->stack];
	bool is_stitched = false;

	builder->cell++;
	if (!push_thread(builder, &builder->model->threads.items[cell->thread]) ||
		!push_frames(builder, cell, &is_stitched) ||
		(stack->count == 0 && !push_nothing(builder))) {
		return false;
	}
	count_self(builder, stack, cell->count);
	count_end(builder, stack, cell->count, is_stitched);
	return tree_add(
		builder->attribution->tree, builder->path.items, builder->path.len, cell->count);
}

static bool add_cells(struct builder *builder, attribution_progress_fn progress, void *context)
{
	size_t count = builder->model->cells.len;

	for (size_t i = 0; i < count; i++) {
		const struct model_cell *cell = &builder->model->cells.items[i];

		if (cell->metric == 0 && !add_cell(builder, cell)) {
			return false;
		}
		if (i % PROGRESS_CELLS == 0 && progress != NULL) {
			progress(context, (unsigned)(i * 1000 / count));
		}
	}
	return true;
}

static bool build(struct builder *builder, attribution_progress_fn progress, void *context)
{
	struct attribution *attribution = builder->attribution;
	size_t images = builder->model->images.len;

	attribution->tree = tree_create(builder->strings);
	attribution->images = calloc(images + 1, sizeof(*attribution->images));
	builder->seen_by = calloc(images + 1, sizeof(*builder->seen_by));
	return attribution->tree != NULL && attribution->images != NULL && builder->seen_by != NULL &&
		   add_cells(builder, progress, context) && tree_finish(attribution->tree) &&
		   functions_init(&attribution->functions, attribution->tree);
}

struct attribution *attribution_create(const struct model *model, struct symbols *symbols,
	struct strings *strings, attribution_progress_fn progress, void *context)
{
	struct builder builder = {
		.attribution = calloc(1, sizeof(struct attribution)),
		.model = model,
		.symbols = symbols,
		.strings = strings,
	};

	if (builder.attribution == NULL) {
		return NULL;
	}
	bool done = build(&builder, progress, context);

	VEC_FINISH(&builder.path);
	free(builder.seen_by);
	if (!done) {
		attribution_destroy(builder.attribution);
		return NULL;
	}
	return builder.attribution;
}

void attribution_destroy(struct attribution *attribution)
{
	if (attribution == NULL) {
		return;
	}
	tree_destroy(attribution->tree);
	functions_finish(&attribution->functions);
	free(attribution->images);
	free(attribution);
}
