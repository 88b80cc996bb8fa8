#include "analyzer/model/loading.h"

bool loading_frame(struct loader *loader, const struct journal_record *record)
{
	uint32_t name = loading_text(loader, record->frame.name);

	return VEC_PUSH(&loader->frame_names, name) && map_put(&loader->frames, record->frame.id, name);
}

static void resolve_native(
	struct loader *loader, const struct space *space, struct model_frame *frame)
{
	uint64_t address = frame->address - frame->is_return;
	const struct space_mapping *mapping = space == NULL ? NULL : space_find(space, address);

	if (mapping == NULL || mapping->image == MODEL_NONE) {
		return;
	}
	frame->image = mapping->image;
	frame->offset = address - mapping->start + mapping->file_offset;
	loader->model->images.items[mapping->image].is_met = true;
}

/* is_inner: no frame of the same side (user, kernel) is inside of this one. */
static struct model_frame frame_of(
	struct loader *loader, const struct space *space, uint64_t value, uint8_t kind, bool is_inner)
{
	struct model_frame frame = {.address = value, .image = MODEL_NONE, .kind = kind};

	if (kind == JOURNAL_FRAME_INTERPRETED || kind == JOURNAL_FRAME_MARKER) {
		const uint64_t *name = map_get(&loader->frames, value);

		frame.name = name == NULL ? 0 : (uint32_t)*name;
		return frame;
	}
	frame.is_return = !is_inner && kind != JOURNAL_FRAME_EXACT && value > 0;
	if (kind == JOURNAL_FRAME_EXACT || kind == JOURNAL_FRAME_NATIVE) {
		frame.kind = JOURNAL_FRAME_NATIVE;
		resolve_native(loader, space, &frame);
	}
	return frame;
}

static void add_frames(struct loader *loader, const struct journal_stack *stack)
{
	struct model *model = loader->model;
	const struct space *space = loading_space(loader, stack->pid);
	bool kernel_seen = false;
	bool user_seen = false;

	for (uint64_t i = 0; i < stack->frame_count; i++) {
		uint8_t kind = stack->kinds[i];
		bool *seen = kind == JOURNAL_FRAME_KERNEL ? &kernel_seen : &user_seen;
		struct model_frame frame = frame_of(loader, space, stack->values[i], kind, !*seen);

		*seen |= kind != JOURNAL_FRAME_MARKER;
		model->frames.items[model->frames.len++] = frame; /* room was made */
	}
}

bool loading_stack(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct journal_stack *stack = &record->stack;
	const struct model_stack item = {
		.pid = stack->pid,
		.end = stack->end,
		.first = model->frames.len,
		.count = stack->frame_count,
	};

	if (stack->id == 0 || stack->frame_count > MODEL_MAX_FRAMES - model->frames.len ||
		model->stacks.len >= MODEL_MAX_STACKS) {
		return loading_contradict(loader);
	}
	if (!VEC_RESERVE(&model->frames, model->frames.len + stack->frame_count) ||
		!VEC_PUSH(&model->stacks, item)) {
		return false;
	}
	add_frames(loader, stack);
	return map_put(&loader->stacks, stack->id, model->stacks.len - 1);
}

/* The cell of a thread in a stack, made when it is new; NULL: memory is out. */
static struct model_cell *cell_of(
	struct loader *loader, uint32_t thread, uint32_t stack, uint32_t metric)
{
	struct model *model = loader->model;
	uint64_t key = (uint64_t)metric << 56 | (uint64_t)thread << 32 | stack;
	const uint64_t *index = map_get(&loader->cells, key);
	const struct model_cell cell = {.thread = thread, .stack = stack, .metric = metric};

	if (index != NULL) {
		return &model->cells.items[*index];
	}
	if (!VEC_PUSH(&model->cells, cell) || !map_put(&loader->cells, key, model->cells.len - 1)) {
		return NULL;
	}
	return &model->cells.items[model->cells.len - 1];
}

static void see_time(struct model *model, uint64_t time_ns)
{
	if (model->first_sample_ns == 0 || time_ns < model->first_sample_ns) {
		model->first_sample_ns = time_ns;
	}
	if (time_ns > model->last_sample_ns) {
		model->last_sample_ns = time_ns;
	}
}

static void count_sample(struct model *model, struct model_thread *thread, bool is_first_metric)
{
	thread->samples += is_first_metric;
	if (thread->process != MODEL_NONE) {
		model->processes.items[thread->process].samples += is_first_metric;
	}
}

bool loading_sample(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct journal_sample *sample = &record->sample;
	const uint64_t *metric_index = map_get(&loader->metrics, sample->metric);
	const uint64_t *stack = map_get(&loader->stacks, sample->stack);

	if (metric_index == NULL || (sample->stack != 0 && stack == NULL)) {
		return loading_contradict(loader);
	}
	if (map_get(&loader->threads, sample->tid) == NULL &&
		!loading_add_thread(loader, sample->time_ns, 0, sample->tid, 0)) {
		return false;
	}
	const uint64_t *thread = map_get(&loader->threads, sample->tid);

	if (thread == NULL) {
		return true; /* too many threads, and counted */
	}
	struct model_metric *metric = &model->metrics.items[*metric_index];
	struct model_cell *cell = cell_of(
		loader, (uint32_t)*thread, stack == NULL ? 0 : (uint32_t)*stack, (uint32_t)*metric_index);

	if (cell == NULL) {
		return false;
	}
	cell->count++;
	cell->weight += sample->weight != 0 ? sample->weight : metric->period;
	metric->samples++;
	count_sample(model, &model->threads.items[*thread], *metric_index == 0);
	see_time(model, sample->time_ns);
	return true;
}
