#include "support/pipeline_desk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "profile/journal.h"

static void open_desk(struct desk *desk, bool kernel_frames)
{
	char name[] = "/tmp/test_pipeline-XXXXXX";
	struct error err = {0};
	int fd = mkostemp(name, O_CLOEXEC);
	assert_true(fd >= 0);
	unlink(name);
	desk->fd = dup(fd);
	desk->writer = journal_writer_create(fd, 0, &err);
	assert_non_null(desk->writer);
	struct pipeline_options options = {
		.writer = desk->writer,
		.capture_json = "{\"hz\":999}",
		.pid = 100,
		.period_ns = 1001001,
		.kernel_frames = kernel_frames,
	};
	desk->pipeline = pipeline_create(&options, &err);
	assert_non_null(desk->pipeline);
	desk->sink = pipeline_sink(desk->pipeline);
}

static int set_up(void **state, bool kernel_frames)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	assert_non_null(desk);
	open_desk(desk, kernel_frames);
	*state = desk;
	return 0;
}

int desk_set_up(void **state)
{
	return set_up(state, false);
}

int desk_set_up_with_kernel(void **state)
{
	return set_up(state, true);
}

int desk_tear_down(void **state)
{
	struct desk *desk = *state;
	pipeline_destroy(desk->pipeline);
	if (desk->writer) {
		journal_writer_destroy(desk->writer, false, NULL);
	}
	close(desk->fd);
	free(desk);
	return 0;
}

static void say(struct desk *desk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct desk *desk, const char *format, ...)
{
	size_t used = strlen(desk->text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(desk->text + used, sizeof(desk->text) - used, format, arguments);
	va_end(arguments);
}

#define N(value) ((unsigned long long)(value))

static void say_stack(struct desk *desk, const struct journal_stack *stack)
{
	say(desk, "stack %llu of %llu end %llu:", N(stack->id), N(stack->pid), N(stack->end));
	for (size_t i = 0; i < stack->frame_count; i++) {
		say(desk, " %llu/%llx", N(stack->kinds[i]), N(stack->values[i]));
	}
	say(desk, "\n");
}

static void say_task(struct desk *desk, const struct journal_record *record)
{
	switch (record->type) {
	case JOURNAL_PROCESS:
		say(desk, "%llu process %llu of %llu s%llu%s%s\n", N(record->process.time_ns),
			N(record->process.pid), N(record->process.parent_pid), N(record->process.name),
			record->process.is_exec ? " exec" : "", record->process.is_fork ? " fork" : "");
		break;
	case JOURNAL_PROCESS_END:
		say(desk, "%llu process end %llu\n", N(record->process_end.time_ns),
			N(record->process_end.pid));
		break;
	case JOURNAL_THREAD:
		say(desk, "%llu thread %llu/%llu s%llu\n", N(record->thread.time_ns), N(record->thread.pid),
			N(record->thread.tid), N(record->thread.name));
		break;
	case JOURNAL_THREAD_END:
		say(desk, "%llu thread end %llu\n", N(record->thread_end.time_ns),
			N(record->thread_end.tid));
		break;
	default:
		say(desk, "record %d\n", (int)record->type);
	}
}

static void say_record(struct desk *desk, const struct journal_record *record)
{
	switch (record->type) {
	case JOURNAL_SEGMENT:
		break;
	case JOURNAL_CAPTURE:
		say(desk, "capture %.*s\n", (int)record->capture.json.len, record->capture.json.data);
		break;
	case JOURNAL_STRING:
		say(desk, "s%llu=%.*s\n", N(record->string.id), (int)record->string.text.len,
			record->string.text.data);
		break;
	case JOURNAL_METRIC:
		say(desk, "metric %llu s%llu unit %llu period %llu\n", N(record->metric.id),
			N(record->metric.name), N(record->metric.unit), N(record->metric.period));
		break;
	case JOURNAL_IMAGE:
		say(desk, "image %llu kind %llu s%llu%s\n", N(record->image.id), N(record->image.kind),
			N(record->image.path), record->image.access == JOURNAL_IMAGE_OPENED ? " open" : "");
		break;
	case JOURNAL_MAPPING:
		say(desk, "%llu mapping %llx+%llx @%llx image %llu\n", N(record->mapping.time_ns),
			N(record->mapping.start), N(record->mapping.length), N(record->mapping.file_offset),
			N(record->mapping.image));
		break;
	case JOURNAL_STACK:
		say_stack(desk, &record->stack);
		break;
	case JOURNAL_SAMPLE:
		say(desk, "%llu sample %llu stack %llu metric %llu weight %llu\n",
			N(record->sample.time_ns), N(record->sample.tid), N(record->sample.stack),
			N(record->sample.metric), N(record->sample.weight));
		break;
	case JOURNAL_LOSS:
		say(desk, "%llu loss %llu count %llu cpu %llu withheld %llu\n", N(record->loss.time_ns),
			N(record->loss.cause), N(record->loss.count), N(record->loss.cpu),
			N(record->loss.withheld_ns));
		break;
	case JOURNAL_CPU_TIME:
		say(desk, "%llu cpu time of %llu: %llu user %llu system %llu\n",
			N(record->cpu_time.time_ns), N(record->cpu_time.tid), N(record->cpu_time.total_ns),
			N(record->cpu_time.user_ns), N(record->cpu_time.system_ns));
		break;
	case JOURNAL_END:
		say(desk, "%llu end s%llu samples %llu lost %llu\n", N(record->end.time_ns),
			N(record->end.reason), N(record->end.samples), N(record->end.lost));
		break;
	default:
		say_task(desk, record);
	}
}

const char *desk_read_back(struct desk *desk)
{
	static const char begin[] = "capture {\"hz\":999}\ns1=cpu\nmetric 1 s1 unit 0 period 1001001\n";
	struct error err = {0};
	struct journal_record record;
	enum journal_result result;
	assert_true(journal_writer_destroy(desk->writer, false, &err));
	desk->writer = NULL;
	ssize_t len = pread(desk->fd, desk->bytes, sizeof(desk->bytes), 0);
	assert_true(len > 0 && (size_t)len < sizeof(desk->bytes));
	struct journal_reader *reader = journal_reader_create(desk->bytes, (size_t)len);
	assert_non_null(reader);
	bool is_first = true;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		assert_int_equal(record.type == JOURNAL_SEGMENT, is_first);
		is_first = false;
		say_record(desk, &record);
	}
	assert_int_equal(result, JOURNAL_READ_END);
	journal_reader_destroy(reader);
	assert_memory_equal(desk->text, begin, strlen(begin));
	return desk->text + strlen(begin);
}

void desk_thread(struct desk *desk, uint64_t time_ns, pid_t tid, const char *name)
{
	desk->sink.thread(desk->pipeline, &(struct sampler_thread){time_ns, 100, tid, name});
}

void desk_sample_of(
	struct desk *desk, uint64_t time_ns, pid_t pid, pid_t tid, size_t count, const uint64_t *frames)
{
	desk->sink.sample(desk->pipeline, &(struct sampler_sample){
										  .time_ns = time_ns,
										  .pid = pid,
										  .tid = tid,
										  .user_frames = frames,
										  .user_count = count,
									  });
}

void desk_map(struct desk *desk, uint64_t time_ns, uint64_t start, uint64_t length, uint64_t offset,
	const char *path)
{
	desk->sink.mapping(desk->pipeline, &(struct sampler_mapping){
										   .time_ns = time_ns,
										   .pid = 100,
										   .start = start,
										   .length = length,
										   .file_offset = offset,
										   .protection = 5,
										   .path = path,
									   });
}
