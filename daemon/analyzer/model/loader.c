#include "analyzer/model/loader.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/space.h"
#include "protocol/limits.h"

/* What the records read so far mean for the next one. The maps lead from ids of the journal to indices of the model. */
struct loader {
	struct model *model;
	struct strings *strings;
	struct map texts, images, metrics, frames, stacks; /* of this segment */
	struct map processes, threads; /* the latest of that id, also when it has ended */
	struct map cells;
	VEC(struct space) spaces;  /* of the process with the same index */
	VEC(uint32_t) frame_names; /* of FRAME records */
	size_t mapping_count;
};

/* Every handler: false only when memory is out. */
typedef bool (*load_fn)(struct loader *loader, const struct journal_record *record);

static void finish(struct loader *loader)
{
	map_finish(&loader->texts);
	map_finish(&loader->images);
	map_finish(&loader->metrics);
	map_finish(&loader->frames);
	map_finish(&loader->stacks);
	map_finish(&loader->processes);
	map_finish(&loader->threads);
	map_finish(&loader->cells);
	for (size_t i = 0; i < loader->spaces.len; i++) {
		space_finish(&loader->spaces.items[i]);
	}
	VEC_FINISH(&loader->spaces);
	VEC_FINISH(&loader->frame_names);
}

/* Leaves a record out. */
static bool contradict(struct loader *loader)
{
	loader->model->contradictions++;
	return true;
}

static uint32_t intern(struct loader *loader, struct bytes_text text)
{
	size_t len = text.len < LIMIT_NAME_BYTES ? text.len : LIMIT_NAME_BYTES;

	return strings_intern(loader->strings, text.data, len, NULL);
}

/* The string of a journal's string id; 0 when it is none. */
static uint32_t text_of(const struct loader *loader, uint64_t id)
{
	const uint64_t *text = map_get(&loader->texts, id);

	return text == NULL ? 0 : (uint32_t)*text;
}

static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

static bool load_segment(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;

	map_finish(&loader->texts);
	map_finish(&loader->images);
	map_finish(&loader->metrics);
	map_finish(&loader->frames);
	map_finish(&loader->stacks);
	for (size_t i = 0; i < loader->spaces.len; i++) {
		space_clear(&loader->spaces.items[i]);
	}
	loader->mapping_count = 0;
	if (model->segments++ > 0) {
		return true;
	}
	model->clock = record->segment.clock;
	model->begin_ns = record->segment.begin_ns;
	model->begin_unix_us = record->segment.begin_unix_us;
	model->machine = intern(loader, record->segment.machine);
	model->system = intern(loader, record->segment.system);
	return model->machine != 0 && model->system != 0;
}

static bool load_capture(struct loader *loader, const struct journal_record *record)
{
	struct bytes_text json = record->capture.json;

	loader->model->capture_json = strings_intern(loader->strings, json.data, json.len, NULL);
	return loader->model->capture_json != 0;
}

static bool load_string(struct loader *loader, const struct journal_record *record)
{
	uint32_t text = intern(loader, record->string.text);

	return text != 0 && map_put(&loader->texts, record->string.id, text);
}

static bool load_metric(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	struct model_metric metric = {
		.name = text_of(loader, record->metric.name),
		.unit = record->metric.unit,
		.period = record->metric.period,
	};
	size_t index = 0;

	while (index < model->metrics.len && (model->metrics.items[index].name != metric.name ||
											 model->metrics.items[index].unit != metric.unit)) {
		index++;
	}
	if (index < model->metrics.len) {
		model->metrics.items[index].period = metric.period;
	} else if (index >= MODEL_MAX_METRICS) {
		return contradict(loader);
	} else if (!VEC_PUSH(&model->metrics, metric)) {
		return false;
	}
	return map_put(&loader->metrics, record->metric.id, index);
}

/* The index of the living process, made when it is new; MODEL_NONE: too many. False: memory is out. */
static bool find_process(struct loader *loader, uint64_t pid, uint32_t *index)
{
	struct model *model = loader->model;
	const uint64_t *known = map_get(&loader->processes, pid);
	const struct model_process process = {.pid = pid};
	const struct space space = {0};

	if (known != NULL && !model->processes.items[*known].has_ended) {
		*index = (uint32_t)*known;
		return true;
	}
	if (model->processes.len >= LIMIT_PROCESSES) {
		*index = MODEL_NONE;
		return true;
	}
	if (!VEC_PUSH(&model->processes, process)) {
		return false;
	}
	if (!VEC_PUSH(&loader->spaces, space)) {
		model->processes.len--;
		return false;
	}
	*index = (uint32_t)model->processes.len - 1;
	return map_put(&loader->processes, pid, *index);
}

static struct space *space_of(struct loader *loader, uint64_t pid)
{
	const uint64_t *index = map_get(&loader->processes, pid);

	return index == NULL ? NULL : &loader->spaces.items[*index];
}

/* Mappings of all processes are counted, because a few bytes of FORK copy many. */
static bool copy_space(struct loader *loader, struct space *space, const struct space *from)
{
	if (loader->mapping_count + from->mappings.len > MODEL_MAX_MAPPINGS) {
		return contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	if (!space_copy(space, from)) {
		return false;
	}
	loader->mapping_count += space->mappings.len;
	return true;
}

static bool begin_space(
	struct loader *loader, const struct journal_process *process, uint32_t index)
{
	struct space *space = &loader->spaces.items[index];
	const struct space *parent = space_of(loader, process->parent_pid);

	if (process->is_fork && parent != NULL && parent != space) {
		return copy_space(loader, space, parent);
	}
	if (process->is_exec) {
		loader->mapping_count -= space->mappings.len;
		space_clear(space);
	}
	return true;
}

static bool load_process(struct loader *loader, const struct journal_record *record)
{
	const struct journal_process *process = &record->process;
	uint32_t index;

	if (!find_process(loader, process->pid, &index)) {
		return false;
	}
	if (index == MODEL_NONE) {
		return contradict(loader);
	}
	struct model_process *item = &loader->model->processes.items[index];

	item->parent_pid = process->parent_pid;
	item->name = process->name != 0 ? text_of(loader, process->name) : item->name;
	item->executable =
		process->executable != 0 ? text_of(loader, process->executable) : item->executable;
	return begin_space(loader, process, index);
}

static bool load_process_end(struct loader *loader, const struct journal_record *record)
{
	const uint64_t *index = map_get(&loader->processes, record->process_end.pid);

	if (index == NULL) {
		return contradict(loader);
	}
	loader->model->processes.items[*index].has_ended = true;
	loader->mapping_count -= loader->spaces.items[*index].mappings.len;
	space_finish(&loader->spaces.items[*index]);
	return true;
}

static bool add_thread(struct loader *loader, uint64_t pid, uint64_t tid, uint32_t name)
{
	struct model *model = loader->model;
	const uint64_t *process = map_get(&loader->processes, pid);
	const struct model_thread thread = {
		.pid = pid,
		.tid = tid,
		.name = name,
		.process = process == NULL ? MODEL_NONE : (uint32_t)*process,
	};

	if (model->threads.len >= MODEL_MAX_THREADS) {
		return contradict(loader);
	}
	return VEC_PUSH(&model->threads, thread) &&
		   map_put(&loader->threads, tid, model->threads.len - 1);
}

/* A living thread gets a new name; whatever has the id of another process is another thread. */
static bool load_thread(struct loader *loader, const struct journal_record *record)
{
	const struct journal_thread *thread = &record->thread;
	uint32_t name = text_of(loader, thread->name);
	const uint64_t *index = map_get(&loader->threads, thread->tid);

	struct model_thread *item = index == NULL ? NULL : &loader->model->threads.items[*index];

	if (item != NULL && item->pid == thread->pid && !item->has_ended) {
		item->name = name != 0 ? name : item->name;
		return true;
	}
	return add_thread(loader, thread->pid, thread->tid, name);
}

static bool load_thread_end(struct loader *loader, const struct journal_record *record)
{
	const uint64_t *index = map_get(&loader->threads, record->thread_end.tid);

	if (index == NULL) {
		return contradict(loader);
	}
	loader->model->threads.items[*index].has_ended = true;
	return true;
}

static bool is_same_image(const struct model_image *a, const struct model_image *b)
{
	return a->kind == b->kind && a->path == b->path && a->device == b->device &&
		   a->inode == b->inode && a->inode_generation == b->inode_generation &&
		   a->build_id_bytes == b->build_id_bytes &&
		   memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0;
}

static struct model_image image_of(const struct loader *loader, const struct journal_image *image)
{
	struct model_image item = {
		.id = image->id,
		.kind = image->kind,
		.path = text_of(loader, image->path),
		.device = image->device,
		.inode = image->inode,
		.inode_generation = image->inode_generation,
		.was_opened = image->was_opened != 0,
	};
	size_t len = image->build_id.len;

	len = len < sizeof(item.build_id) ? len : sizeof(item.build_id);
	if (len > 0) {
		memcpy(item.build_id, image->build_id.data, len);
	}
	item.build_id_bytes = (uint8_t)len;
	return item;
}

/* An image that an earlier segment knew under the same id stays one image. */
static bool load_image(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	struct model_image image = image_of(loader, &record->image);
	const uint64_t *known = map_get(&model->image_ids, image.id);

	if (known != NULL && is_same_image(&model->images.items[*known], &image)) {
		model->images.items[*known].was_opened |= image.was_opened;
		return map_put(&loader->images, image.id, *known);
	}
	if (model->images.len >= LIMIT_IMAGES) {
		return contradict(loader);
	}
	uint64_t index = model->images.len;

	return VEC_PUSH(&model->images, image) && map_put(&model->image_ids, image.id, index) &&
		   map_put(&loader->images, image.id, index);
}

/* For one mapping more. */
static bool has_room(const struct loader *loader, const struct space *space)
{
	return space->mappings.len < MODEL_PROCESS_MAPPINGS &&
		   loader->mapping_count < MODEL_MAX_MAPPINGS;
}

static bool load_mapping(struct loader *loader, const struct journal_record *record)
{
	const struct journal_mapping *mapping = &record->mapping;
	struct space *space = space_of(loader, mapping->pid);
	const uint64_t *image = map_get(&loader->images, mapping->image);
	struct space_mapping item = {
		.start = mapping->start,
		.end = end_of(mapping->start, mapping->length),
		.file_offset = mapping->file_offset,
		.image = image == NULL ? MODEL_NONE : (uint32_t)*image,
	};

	if (space == NULL || !has_room(loader, space)) {
		return contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	bool done = space_map(space, &item);

	loader->mapping_count += space->mappings.len;
	return done;
}

/* A hole within one mapping leaves two. */
static bool is_split(const struct space *space, uint64_t start, uint64_t end)
{
	const struct space_mapping *mapping = space_find(space, start);

	return mapping != NULL && mapping->start < start && mapping->end > end;
}

static bool load_unmapping(struct loader *loader, const struct journal_record *record)
{
	const struct journal_unmapping *unmapping = &record->unmapping;
	struct space *space = space_of(loader, unmapping->pid);
	uint64_t end = end_of(unmapping->start, unmapping->length);

	if (space == NULL || (!has_room(loader, space) && is_split(space, unmapping->start, end))) {
		return contradict(loader);
	}
	loader->mapping_count -= space->mappings.len;
	bool done = space_unmap(space, unmapping->start, end);

	loader->mapping_count += space->mappings.len;
	return done;
}

static bool load_frame(struct loader *loader, const struct journal_record *record)
{
	uint32_t name = text_of(loader, record->frame.name);

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
	const struct space *space = space_of(loader, stack->pid);
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

static bool load_stack(struct loader *loader, const struct journal_record *record)
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
		return contradict(loader);
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

static bool load_sample(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct journal_sample *sample = &record->sample;
	const uint64_t *metric_index = map_get(&loader->metrics, sample->metric);
	const uint64_t *stack = map_get(&loader->stacks, sample->stack);

	if (metric_index == NULL || (sample->stack != 0 && stack == NULL)) {
		return contradict(loader);
	}
	if (map_get(&loader->threads, sample->tid) == NULL && !add_thread(loader, 0, sample->tid, 0)) {
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
	model->threads.items[*thread].samples += *metric_index == 0;
	see_time(model, sample->time_ns);
	return true;
}

static bool load_loss(struct loader *loader, const struct journal_record *record)
{
	if (record->loss.cause > JOURNAL_LOSS_DISK) {
		return contradict(loader);
	}
	loader->model->lost[record->loss.cause] += record->loss.count;
	return true;
}

/* Each record tells what was consumed so far: the latest of a process or thread counts. */
static bool load_cpu_time(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct journal_cpu_time *time = &record->cpu_time;
	const uint64_t *index = time->tid == 0 ? map_get(&loader->processes, time->pid)
										   : map_get(&loader->threads, time->tid);

	if (index == NULL) {
		return contradict(loader);
	}
	if (time->tid != 0) {
		model->threads.items[*index].cpu_ns = time->total_ns;
		return true;
	}
	struct model_process *process = &model->processes.items[*index];

	process->has_cpu = true;
	process->cpu_ns = time->total_ns;
	process->cpu_user_ns = time->user_ns;
	process->cpu_system_ns = time->system_ns;
	return true;
}

static bool load_note(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct model_note note = {
		text_of(loader, record->note.code), text_of(loader, record->note.text)};

	for (size_t i = 0; i < model->notes.len; i++) {
		if (model->notes.items[i].code == note.code && model->notes.items[i].text == note.text) {
			return true; /* each segment may repeat it */
		}
	}
	if (model->notes.len >= MODEL_MAX_NOTES) {
		return contradict(loader);
	}
	return VEC_PUSH(&model->notes, note);
}

static bool load_end(struct loader *loader, const struct journal_record *record)
{
	loader->model->has_end = true;
	loader->model->end_ns = record->end.time_ns;
	loader->model->end_reason = text_of(loader, record->end.reason);
	return true;
}

/* By enum journal_type. NULL: of no use to the model. */
static const load_fn LOADERS[] = {
	[JOURNAL_SEGMENT] = load_segment,
	[JOURNAL_CAPTURE] = load_capture,
	[JOURNAL_STRING] = load_string,
	[JOURNAL_METRIC] = load_metric,
	[JOURNAL_PROCESS] = load_process,
	[JOURNAL_PROCESS_END] = load_process_end,
	[JOURNAL_THREAD] = load_thread,
	[JOURNAL_THREAD_END] = load_thread_end,
	[JOURNAL_IMAGE] = load_image,
	[JOURNAL_MAPPING] = load_mapping,
	[JOURNAL_UNMAPPING] = load_unmapping,
	[JOURNAL_FRAME] = load_frame,
	[JOURNAL_STACK] = load_stack,
	[JOURNAL_SAMPLE] = load_sample,
	[JOURNAL_LOSS] = load_loss,
	[JOURNAL_CPU_TIME] = load_cpu_time,
	[JOURNAL_MARK] = NULL,
	[JOURNAL_NOTE] = load_note,
	[JOURNAL_END] = load_end,
};

static bool load(struct loader *loader, const struct journal_record *record)
{
	size_t type = record->type;
	load_fn fn = type < sizeof(LOADERS) / sizeof(LOADERS[0]) ? LOADERS[type] : NULL;

	return fn == NULL || fn(loader, record);
}

static bool load_all(struct loader *loader, struct journal_reader *reader)
{
	struct journal_record record;
	enum journal_result result = journal_reader_next(reader, &record);

	while (result == JOURNAL_READ_RECORD) {
		if (!load(loader, &record)) {
			return false;
		}
		result = journal_reader_next(reader, &record);
	}
	if (result == JOURNAL_READ_BAD) {
		loader->model->is_damaged = true;
		loader->model->damage = intern(loader, bytes_text_of(journal_reader_problem(reader)));
	}
	return true;
}

/* For processes that were told of thread by thread only. */
static void sum_thread_times(struct model *model)
{
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.items[i];

		if (thread->process != MODEL_NONE && !model->processes.items[thread->process].has_cpu) {
			model->processes.items[thread->process].cpu_ns += thread->cpu_ns;
		}
	}
}

bool loader_run(struct model *model, struct strings *strings, const uint8_t *journal, size_t len)
{
	struct loader loader = {.model = model, .strings = strings};
	struct journal_reader *reader = journal_reader_create(journal, len);
	bool done = reader != NULL && load_all(&loader, reader);

	sum_thread_times(model);
	journal_reader_destroy(reader);
	finish(&loader);
	return done;
}
