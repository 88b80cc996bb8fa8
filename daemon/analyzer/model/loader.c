#include "analyzer/model/loader.h"

#include <stdlib.h>

#include "analyzer/model/loading.h"
#include "protocol/limits.h"

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

bool loading_contradict(struct loader *loader)
{
	loader->model->contradictions++;
	return true;
}

static uint32_t intern(struct loader *loader, struct bytes_text text)
{
	size_t len = text.len < LIMIT_NAME_BYTES ? text.len : LIMIT_NAME_BYTES;

	return strings_intern(loader->strings, text.data, len, NULL);
}

uint32_t loading_text(const struct loader *loader, uint64_t id)
{
	const uint64_t *text = map_get(&loader->texts, id);

	return text == NULL ? 0 : (uint32_t)*text;
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
		.name = loading_text(loader, record->metric.name),
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
		return loading_contradict(loader);
	} else if (!VEC_PUSH(&model->metrics, metric)) {
		return false;
	}
	return map_put(&loader->metrics, record->metric.id, index);
}

static bool load_loss(struct loader *loader, const struct journal_record *record)
{
	if (record->loss.cause > JOURNAL_LOSS_DISK) {
		return loading_contradict(loader);
	}
	loader->model->lost[record->loss.cause] += record->loss.count;
	loader->model->withheld_ns += record->loss.withheld_ns;
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
		return loading_contradict(loader);
	}
	if (time->tid != 0) {
		struct model_thread *thread = &model->threads.items[*index];

		thread->cpu_ns = time->total_ns;
		thread->cpu_user_ns = time->user_ns;
		thread->cpu_system_ns = time->system_ns;
		thread->told_samples = thread->samples;
		thread->told_at_ns = time->time_ns;
		return true;
	}
	struct model_process *process = &model->processes.items[*index];

	process->has_cpu = true;
	process->cpu_ns = time->total_ns;
	process->cpu_user_ns = time->user_ns;
	process->cpu_system_ns = time->system_ns;
	process->told_samples = process->samples;
	return true;
}

static bool load_note(struct loader *loader, const struct journal_record *record)
{
	struct model *model = loader->model;
	const struct model_note note = {
		loading_text(loader, record->note.code), loading_text(loader, record->note.text)};

	for (size_t i = 0; i < model->notes.len; i++) {
		if (model->notes.items[i].code == note.code && model->notes.items[i].text == note.text) {
			return true; /* each segment may repeat it */
		}
	}
	if (model->notes.len >= MODEL_MAX_NOTES) {
		return loading_contradict(loader);
	}
	return VEC_PUSH(&model->notes, note);
}

static bool load_end(struct loader *loader, const struct journal_record *record)
{
	loader->model->has_end = true;
	loader->model->end_ns = record->end.time_ns;
	loader->model->end_reason = loading_text(loader, record->end.reason);
	return true;
}

/* By enum journal_type. NULL: of no use to the model. */
static const load_fn LOADERS[] = {
	[JOURNAL_SEGMENT] = load_segment,
	[JOURNAL_CAPTURE] = load_capture,
	[JOURNAL_STRING] = load_string,
	[JOURNAL_METRIC] = load_metric,
	[JOURNAL_PROCESS] = loading_process,
	[JOURNAL_PROCESS_END] = loading_process_end,
	[JOURNAL_THREAD] = loading_thread,
	[JOURNAL_THREAD_END] = loading_thread_end,
	[JOURNAL_IMAGE] = loading_image,
	[JOURNAL_MAPPING] = loading_mapping,
	[JOURNAL_UNMAPPING] = loading_unmapping,
	[JOURNAL_FRAME] = loading_frame,
	[JOURNAL_STACK] = loading_stack,
	[JOURNAL_SAMPLE] = loading_sample,
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
