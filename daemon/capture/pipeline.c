#include "capture/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/map.h"
#include "base/strings.h"
#include "capture/images.h"
#include "capture/moved_code.h"
#include "profile/journal.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "target/target.h"

#define METRIC_CPU 1
#define STITCH_FRAME                                                                               \
	1 /* the id of the FRAME that stands between what was unwound and what was known before */
#define FLUSH_NS    1000000000u
#define STRINGS_MAX 262144 /* a thread can change its name without end */

struct pipeline {
	struct journal_writer *writer; /* borrowed */
	pid_t pid;
	struct pipeline_counters counters;
	struct strings *strings;
	struct sample_stacks *stacks;
	struct images *images;
	struct moved_code moved;
	struct map threads; /* tid → string id of its name; those that live */
	uint64_t flushed_ns;
	uint64_t cpu_time_ns;
	uint64_t children;  /* processes that it forked; they are not sampled */
	size_t overwritten; /* files, while they were sampled */
};

void pipeline_destroy(struct pipeline *pipeline)
{
	if (!pipeline) {
		return;
	}
	strings_destroy(pipeline->strings);
	sample_stacks_destroy(pipeline->stacks);
	images_destroy(pipeline->images);
	moved_code_finish(&pipeline->moved);
	map_finish(&pipeline->threads);
	free(pipeline);
}

static void append(struct pipeline *pipeline, const struct journal_record *record)
{
	journal_writer_append(pipeline->writer, record);
}

/* One writer: no locked instruction is needed. */
static void count(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, value + more, memory_order_relaxed);
}

/* 0 when memory is out, or there are too many: what it names has no name then. */
static uint32_t string_id(struct pipeline *pipeline, const char *text)
{
	bool is_new;
	if (strings_count(pipeline->strings) >= STRINGS_MAX) {
		return 0;
	}
	uint32_t id = strings_intern(pipeline->strings, text, strlen(text), &is_new);
	if (id && is_new) {
		append(pipeline, &(struct journal_record){
							 .type = JOURNAL_STRING,
							 .string = {.id = id, .text = strings_text(pipeline->strings, id)},
						 });
	}
	return id;
}

static void begin_segment(struct pipeline *pipeline)
{
	struct utsname name;
	char system[2 * sizeof(name.sysname)] = "", machine[sizeof(name.machine)] = "";
	if (uname(&name) == 0) {
		snprintf(system, sizeof(system), "%s %s", name.sysname, name.release);
		snprintf(machine, sizeof(machine), "%s", name.machine);
	}
	struct journal_record record = {
		.type = JOURNAL_SEGMENT,
		.segment =
			{
				.version = JOURNAL_VERSION,
				.clock = JOURNAL_CLOCK_MONOTONIC,
				.begin_ns = clock_monotonic_ns(),
				.begin_unix_us = clock_unix_us(),
				.pointer_bytes = sizeof(void *),
				.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
				.machine = bytes_text_of(machine),
				.system = bytes_text_of(system),
			},
	};
	journal_writer_begin_segment(pipeline->writer, &record);
	pipeline->flushed_ns = record.segment.begin_ns;
}

static void begin(struct pipeline *pipeline, const struct pipeline_options *options)
{
	begin_segment(pipeline);
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_CAPTURE,
						 .capture = {.json = bytes_text_of(options->capture_json)},
					 });
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_METRIC,
						 .metric =
							 {
								 .id = METRIC_CPU,
								 .name = string_id(pipeline, "cpu"),
								 .unit = JOURNAL_UNIT_NANOSECONDS,
								 .period = options->period_ns,
							 },
					 });
	if (options->stitches && sample_stacks_unwinds(pipeline->stacks)) {
		append(pipeline, &(struct journal_record){
							 .type = JOURNAL_FRAME,
							 .frame = {.id = STITCH_FRAME,
								 .kind = JOURNAL_FRAME_MARKER,
								 .name = string_id(pipeline, JOURNAL_STITCHED)},
						 });
	}
}

static struct sample_stacks *create_stacks(
	const struct pipeline_options *options, struct error *err)
{
	const struct sample_stacks_options stacks = {
		.writer = options->writer,
		.unwind = options->unwind,
		.codes = options->codes,
		.max_frames = options->max_frames,
		.mark = options->stitches ? STITCH_FRAME : 0,
		.kernel_frames = options->kernel_frames,
	};
	return sample_stacks_create(&stacks, err);
}

struct pipeline *pipeline_create(const struct pipeline_options *options, struct error *err)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	if (pipeline) {
		pipeline->writer = options->writer;
		pipeline->pid = options->pid;
		pipeline->strings = strings_create();
		pipeline->stacks = create_stacks(options, NULL);
		pipeline->images = images_create(images_fd_limit());
	}
	if (!pipeline || !pipeline->strings || !pipeline->stacks || !pipeline->images) {
		pipeline_destroy(pipeline);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a capture's tables");
		return NULL;
	}
	begin(pipeline, options);
	return pipeline;
}

bool pipeline_unwinds(const struct pipeline *pipeline)
{
	return sample_stacks_unwinds(pipeline->stacks);
}

/* The sink */

static void take_process(void *context, const struct sampler_process *process)
{
	struct pipeline *pipeline = context;
	if (process->pid != pipeline->pid) {
		pipeline->children += process->is_fork && process->parent_pid == pipeline->pid;
		return;
	}
	if (process->is_exec) {
		_Atomic uint64_t *first_ns = &pipeline->counters.first_exec_ns;
		sample_stacks_exec(pipeline->stacks);
		moved_code_clear(&pipeline->moved);
		if (atomic_load_explicit(first_ns, memory_order_relaxed) == 0) {
			atomic_store_explicit(first_ns, process->time_ns, memory_order_relaxed);
		}
	}
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_PROCESS,
						 .process =
							 {
								 .time_ns = process->time_ns,
								 .pid = (uint64_t)process->pid,
								 .parent_pid = (uint64_t)process->parent_pid,
								 .name = string_id(pipeline, process->name),
								 .is_exec = process->is_exec,
								 .is_fork = process->is_fork,
							 },
					 });
}

static void take_process_end(void *context, uint64_t time_ns, pid_t pid)
{
	struct pipeline *pipeline = context;
	if (pid == pipeline->pid) {
		append(pipeline, &(struct journal_record){
							 .type = JOURNAL_PROCESS_END,
							 .process_end = {.time_ns = time_ns, .pid = (uint64_t)pid},
						 });
	}
}

/* A thread is told again when it is renamed, or when it was there at the start and its birth is in the rings too. */
static void take_thread(void *context, const struct sampler_thread *thread)
{
	struct pipeline *pipeline = context;
	if (thread->pid != pipeline->pid) {
		return;
	}
	uint64_t name = string_id(pipeline, thread->name);
	const uint64_t *known = map_get(&pipeline->threads, (uint64_t)thread->tid);
	if (known && *known == name) {
		return;
	}
	count(&pipeline->counters.threads, known ? 0 : 1);
	map_put(&pipeline->threads, (uint64_t)thread->tid, name);
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_THREAD,
						 .thread =
							 {
								 .time_ns = thread->time_ns,
								 .pid = (uint64_t)thread->pid,
								 .tid = (uint64_t)thread->tid,
								 .name = name,
							 },
					 });
}

static void take_thread_end(void *context, uint64_t time_ns, pid_t pid, pid_t tid)
{
	struct pipeline *pipeline = context;
	if (pid == pipeline->pid && map_remove(&pipeline->threads, (uint64_t)tid)) {
		append(pipeline, &(struct journal_record){
							 .type = JOURNAL_THREAD_END,
							 .thread_end = {.time_ns = time_ns, .tid = (uint64_t)tid},
						 });
	}
}

static void append_image(struct pipeline *pipeline, const struct sampler_mapping *mapping,
	const struct images_image *image)
{
	append(pipeline,
		&(struct journal_record){
			.type = JOURNAL_IMAGE,
			.image =
				{
					.id = image->id,
					.kind = image->kind,
					.path = string_id(pipeline, mapping->path),
					.device = (uint64_t)mapping->device_major << 32 | mapping->device_minor,
					.inode = mapping->inode,
					.inode_generation = mapping->inode_generation,
					.access = image->access,
				},
		});
}

/* What was written over a file is not what was sampled: it is told again, without the file, so that no name is taken from it. */
static bool end_overwritten(struct pipeline *pipeline, uint32_t id)
{
	struct images_image image;
	struct sampler_mapping place;
	if (!images_was_overwritten(pipeline->images, id) ||
		!images_get(pipeline->images, id, &image)) {
		return false;
	}
	images_describe(pipeline->images, id, &place);
	append_image(pipeline, &place, &image);
	pipeline->overwritten++;
	return true;
}

/* At first sight its file is opened. False: it is no mapping of ours, or memory is out. */
static bool find_image(
	struct pipeline *pipeline, const struct sampler_mapping *mapping, struct images_image *image)
{
	if (mapping->pid != pipeline->pid || !images_find(pipeline->images, mapping, image) ||
		(!image->is_new && end_overwritten(pipeline, image->id) &&
			!images_find(pipeline->images, mapping, image))) {
		return false;
	}
	if (image->is_new) {
		append_image(pipeline, mapping, image);
	}
	return true;
}

static void take_mapped(void *context, const struct sampler_mapping *mapping)
{
	struct images_image image;
	find_image(context, mapping, &image);
}

static void take_mapping(void *context, const struct sampler_mapping *told)
{
	struct pipeline *pipeline = context;
	struct sampler_mapping moved = *told;
	const struct sampler_mapping *mapping = &moved;
	struct images_image image;
	if (told->pid != pipeline->pid) {
		return;
	}
	if (!moved_code_find(&pipeline->moved, pipeline->images, told, &image, &moved.file_offset) &&
		!find_image(pipeline, told, &image)) {
		return;
	}
	if (image.kind == JOURNAL_IMAGE_ELF) {
		moved_code_put(&pipeline->moved, mapping, image.id);
	}
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_MAPPING,
						 .mapping =
							 {
								 .time_ns = mapping->time_ns,
								 .pid = (uint64_t)mapping->pid,
								 .start = mapping->start,
								 .length = mapping->length,
								 .file_offset = mapping->file_offset,
								 .image = image.id,
								 .protection = mapping->protection,
							 },
					 });
	sample_stacks_map(pipeline->stacks, mapping, image.id, image.kind, image.fd);
}

/* Its birth was lost: a sample must not stand without its thread. */
static void meet_thread(struct pipeline *pipeline, const struct sampler_sample *sample)
{
	char name[16] = "";
	target_thread_name(sample->pid, sample->tid, name, NULL);
	struct sampler_thread thread = {sample->time_ns, sample->pid, sample->tid, name};
	take_thread(pipeline, &thread);
}

static void take_sample(void *context, const struct sampler_sample *sample)
{
	struct pipeline *pipeline = context;
	if (sample->pid != pipeline->pid) {
		return;
	}
	if (!map_get(&pipeline->threads, (uint64_t)sample->tid)) {
		meet_thread(pipeline, sample);
	}
	if (atomic_load_explicit(&pipeline->counters.samples, memory_order_relaxed) == 0) {
		atomic_store_explicit(
			&pipeline->counters.first_sample_ns, sample->time_ns, memory_order_relaxed);
	}
	struct sample_stack stack = sample_stacks_take(pipeline->stacks, sample);
	count(&pipeline->counters.samples, 1);
	count(&pipeline->counters.stacks, stack.is_new);
	count(&pipeline->counters.truncated, stack.is_cut);
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_SAMPLE,
						 .sample =
							 {
								 .time_ns = sample->time_ns,
								 .tid = (uint64_t)sample->tid,
								 .stack = stack.id,
								 .state = JOURNAL_STATE_RUNNING,
								 .metric = METRIC_CPU,
							 },
					 });
}

static enum journal_loss loss_cause(enum sampler_loss cause)
{
	switch (cause) {
	case SAMPLER_LOSS_RING:
		return JOURNAL_LOSS_RING;
	case SAMPLER_LOSS_THROTTLED:
		return JOURNAL_LOSS_THROTTLED;
	default:
		return JOURNAL_LOSS_MALFORMED;
	}
}

static void take_loss(
	void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t lost, int cpu)
{
	struct pipeline *pipeline = context;
	count(
		cause == SAMPLER_LOSS_THROTTLED ? &pipeline->counters.throttled : &pipeline->counters.lost,
		lost);
	if (cause != SAMPLER_LOSS_THROTTLED) {
		sample_stacks_doubt(pipeline->stacks);
	}
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_LOSS,
						 .loss =
							 {
								 .time_ns = time_ns,
								 .cause = loss_cause(cause),
								 .count = lost,
								 .cpu = cpu < 0 ? 0 : (uint64_t)cpu + 1,
							 },
					 });
}

static void take_drained(void *context, uint64_t now_ns)
{
	struct pipeline *pipeline = context;
	if (now_ns - pipeline->flushed_ns >= FLUSH_NS) {
		journal_writer_flush(pipeline->writer);
		pipeline->flushed_ns = now_ns;
	}
}

static bool wants_more(void *context)
{
	const struct pipeline *pipeline = context;
	return sample_stacks_want_more(pipeline->stacks);
}

static void take_throttled(void *context, uint64_t time_ns, uint64_t withheld_ns)
{
	struct pipeline *pipeline = context;
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_LOSS,
						 .loss =
							 {
								 .time_ns = time_ns,
								 .cause = JOURNAL_LOSS_THROTTLED,
								 .withheld_ns = withheld_ns,
							 },
					 });
}

static void take_cpu_time(void *context, const struct sampler_cpu_time *time)
{
	struct pipeline *pipeline = context;
	if (time->pid != pipeline->pid ||
		(time->tid != 0 && !map_get(&pipeline->threads, (uint64_t)time->tid))) {
		return;
	}
	pipeline->cpu_time_ns = time->tid == 0 ? time->total_ns : pipeline->cpu_time_ns;
	append(pipeline, &(struct journal_record){
						 .type = JOURNAL_CPU_TIME,
						 .cpu_time =
							 {
								 .time_ns = time->time_ns,
								 .pid = (uint64_t)time->pid,
								 .tid = (uint64_t)time->tid,
								 .total_ns = time->total_ns,
								 .user_ns = time->user_ns,
								 .system_ns = time->system_ns,
							 },
					 });
}

struct sampler_sink pipeline_sink(struct pipeline *pipeline)
{
	return (struct sampler_sink){
		.context = pipeline,
		.process = take_process,
		.process_end = take_process_end,
		.thread = take_thread,
		.thread_end = take_thread_end,
		.mapping = take_mapping,
		.mapped = take_mapped,
		.wants_more = wants_more,
		.sample = take_sample,
		.loss = take_loss,
		.drained = take_drained,
		.throttled = take_throttled,
		.cpu_time = take_cpu_time,
	};
}

/* From outside */

const struct pipeline_counters *pipeline_counters(const struct pipeline *pipeline)
{
	return &pipeline->counters;
}

static void append_note(struct pipeline *pipeline, const char *code, const char *text)
{
	append(pipeline,
		&(struct journal_record){
			.type = JOURNAL_NOTE,
			.note = {.code = string_id(pipeline, code), .text = string_id(pipeline, text)},
		});
}

static void append_notes(struct pipeline *pipeline)
{
	char text[128];
	size_t missing = images_not_opened(pipeline->images);
	if (missing > 0) {
		snprintf(text, sizeof(text),
			"%zu of the program's files were not opened for want of descriptors: they have no "
			"names",
			missing);
		append_note(pipeline, "images_not_opened", text);
	}
	if (pipeline->overwritten > 0) {
		snprintf(text, sizeof(text),
			"%zu of the program's files were overwritten while it ran: what they held before has "
			"no "
			"names",
			pipeline->overwritten);
		append_note(pipeline, "images_overwritten", text);
	}
	if (pipeline->children > 0) {
		snprintf(text, sizeof(text),
			"the program started %" PRIu64 " child processes, what they did is not in this profile",
			pipeline->children);
		append_note(pipeline, "children_not_sampled", text);
	}
}

void pipeline_end(struct pipeline *pipeline, const char *reason, uint64_t time_ns)
{
	for (size_t id = 1; id <= images_count(pipeline->images); id++) {
		end_overwritten(pipeline, (uint32_t)id);
	}
	append_notes(pipeline);
	append(pipeline,
		&(struct journal_record){
			.type = JOURNAL_END,
			.end =
				{
					.time_ns = time_ns,
					.reason = string_id(pipeline, reason),
					.samples =
						atomic_load_explicit(&pipeline->counters.samples, memory_order_relaxed),
					.lost = atomic_load_explicit(&pipeline->counters.lost, memory_order_relaxed),
				},
		});
	journal_writer_flush(pipeline->writer);
}

const struct pipeline_image *pipeline_images(const struct pipeline *pipeline, size_t *image_count)
{
	return images_opened(pipeline->images, image_count);
}

uint64_t pipeline_cpu_time_ns(const struct pipeline *pipeline)
{
	return pipeline->cpu_time_ns;
}
