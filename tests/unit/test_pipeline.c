#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/pipeline.h"
#include "capture/stacks.h"
#include "profile/journal.h"

/* The test plays the sampler, and reads the journal back as lines of text. */
struct desk {
	int fd;
	struct journal_writer *writer;
	struct pipeline *pipeline;
	struct sampler_sink sink;
	char text[65536];
	uint8_t bytes[1024 * 1024];
};

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
		.unwinder = "fp",
	};
	desk->pipeline = pipeline_create(&options, &err);
	assert_non_null(desk->pipeline);
	desk->sink = pipeline_sink(desk->pipeline);
}

static int setup(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	assert_non_null(desk);
	open_desk(desk, false);
	*state = desk;
	return 0;
}

static int setup_with_kernel(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));
	assert_non_null(desk);
	open_desk(desk, true);
	*state = desk;
	return 0;
}

static int teardown(void **state)
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
			N(record->image.path), record->image.was_opened ? " open" : "");
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
		say(desk, "%llu loss %llu count %llu cpu %llu\n", N(record->loss.time_ns),
			N(record->loss.cause), N(record->loss.count), N(record->loss.cpu));
		break;
	case JOURNAL_CPU_TIME:
		say(desk, "%llu cpu time %llu\n", N(record->cpu_time.time_ns),
			N(record->cpu_time.total_ns));
		break;
	case JOURNAL_END:
		say(desk, "%llu end s%llu samples %llu lost %llu\n", N(record->end.time_ns),
			N(record->end.reason), N(record->end.samples), N(record->end.lost));
		break;
	default:
		say_task(desk, record);
	}
}

/* Ends the journal; its text behind the records that every one begins with. */
static const char *read_back(struct desk *desk)
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

/* What the sampler would say */

static void thread(struct desk *desk, uint64_t time_ns, pid_t tid, const char *name)
{
	desk->sink.thread(desk->pipeline, &(struct sampler_thread){time_ns, 100, tid, name});
}

static void sample_of(
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

#define SAMPLE(desk, time_ns, ...)                                                                 \
	sample_of(                                                                                     \
		desk, time_ns, 100, 100, sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

static void map_at(struct desk *desk, uint64_t time_ns, uint64_t start, uint64_t length,
	uint64_t offset, const char *path)
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

/* The cases */

static void defines_each_stack_once(void **state)
{
	thread(*state, 1, 100, "main");
	SAMPLE(*state, 2, 0x10, 0x20);
	SAMPLE(*state, 3, 0x10, 0x20);
	SAMPLE(*state, 4, 0x10);
	SAMPLE(*state, 5, 0x10, 0x21);
	SAMPLE(*state, 6, 0x10, 0x20);
	assert_string_equal(read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"stack 2 of 100 end 1: 0/10\n4 sample 100 stack 2 metric 1 weight 0\n"
		"stack 3 of 100 end 1: 0/10 0/21\n5 sample 100 stack 3 metric 1 weight 0\n"
		"6 sample 100 stack 1 metric 1 weight 0\n");
	const struct pipeline_counters *counters = pipeline_counters(((struct desk *)*state)->pipeline);
	assert_int_equal(counters->samples, 5);
	assert_int_equal(counters->stacks, 3);
	assert_int_equal(counters->threads, 1);
	assert_int_equal(counters->first_sample_ns, 2);
}

static void drops_other_processes(void **state)
{
	struct desk *desk = *state;
	sample_of(desk, 1, 101, 101, 1, (uint64_t[]){1});
	sample_of(desk, 2, 0, 0, 1, (uint64_t[]){1});
	desk->sink.process(desk->pipeline,
		&(struct sampler_process){
			.time_ns = 3, .pid = 101, .parent_pid = 100, .name = "x", .is_fork = true});
	desk->sink.thread(desk->pipeline, &(struct sampler_thread){4, 101, 101, "x"});
	desk->sink.thread_end(desk->pipeline, 5, 101, 101);
	desk->sink.process_end(desk->pipeline, 6, 101);
	desk->sink.cpu_time(desk->pipeline, 7, 101, 5);
	assert_string_equal(read_back(desk), "");
	assert_int_equal(pipeline_counters(desk->pipeline)->samples, 0);
}

static void sample_with_kernel(
	struct desk *desk, uint64_t time_ns, size_t kernel, size_t user, bool cut)
{
	static const uint64_t kernel_frames[] = {0xffffffff81000010, 0xffffffff81000020};
	static const uint64_t user_frames[] = {0x10, 0x20};
	desk->sink.sample(desk->pipeline, &(struct sampler_sample){
										  .time_ns = time_ns,
										  .pid = 100,
										  .tid = 100,
										  .kernel_frames = kernel_frames,
										  .kernel_count = kernel,
										  .user_frames = user_frames,
										  .user_count = user,
										  .cut = cut,
									  });
}

static void leaves_the_kernel_out_when_it_is_not_wanted(void **state)
{
	thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 2, 2, false);
	sample_with_kernel(*state, 3, 0, 2, false);
	sample_with_kernel(*state, 4, 2, 0, false);
	assert_string_equal(read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"4 sample 100 stack 0 metric 1 weight 0\n");
}

static void puts_the_kernel_before_the_user_when_it_is_wanted(void **state)
{
	thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 1, 2, false);
	sample_with_kernel(*state, 3, 2, 0, false);
	sample_with_kernel(*state, 4, 0, 0, false);
	assert_string_equal(read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 1: 1/ffffffff81000010 0/10 0/20\n2 sample 100 stack 1 metric 1 weight "
		"0\n"
		"stack 2 of 100 end 5: 1/ffffffff81000010 1/ffffffff81000020\n"
		"3 sample 100 stack 2 metric 1 weight 0\n"
		"4 sample 100 stack 0 metric 1 weight 0\n");
}

static void cuts_a_stack_where_its_return_addresses_leave_the_code(void **state)
{
	struct desk *desk = *state;
	thread(*state, 1, 100, "main");
	map_at(*state, 2, 0x1000, 0x1000, 0, "/no/such/a.so");
	SAMPLE(*state, 3, 0x10, 0x1800,
		0x2000); /* the leaf may be anywhere; a call can be the last of the code */
	SAMPLE(*state, 4, 0x1010, 0x1800, 0x2001, 0x1900);
	SAMPLE(*state, 5, 0x1010, 0x1800, 0x2001, 0x1900);
	desk->sink.loss(desk->pipeline, 6, SAMPLER_LOSS_RING, 1, 0);
	SAMPLE(*state, 7, 0x1010, 0x3000); /* its mapping may be what was lost */
	const char *said = read_back(*state);
	assert_non_null(strstr(said, "stack 1 of 100 end 1: 0/10 0/1800 0/2000\n"));
	assert_non_null(strstr(said, "stack 2 of 100 end 4: 0/1010 0/1800\n4 sample"));
	assert_non_null(strstr(said, "5 sample 100 stack 2 "));
	assert_non_null(strstr(said, "stack 3 of 100 end 1: 0/1010 0/3000\n"));
}

static void tells_a_cut_stack_from_a_whole_one(void **state)
{
	thread(*state, 1, 100, "main");
	sample_with_kernel(*state, 2, 0, 2, true);
	sample_with_kernel(*state, 3, 0, 2, false);
	assert_string_equal(read_back(*state),
		"s2=main\n1 thread 100/100 s2\n"
		"stack 1 of 100 end 2: 0/10 0/20\n2 sample 100 stack 1 metric 1 weight 0\n"
		"stack 2 of 100 end 1: 0/10 0/20\n3 sample 100 stack 2 metric 1 weight 0\n");
	assert_int_equal(pipeline_counters(((struct desk *)*state)->pipeline)->truncated, 1);
}

static void knows_every_sampled_thread(void **state)
{
	struct desk *desk = *state;
	thread(desk, 1, 100, "main");
	thread(desk, 1, 100, "main");
	thread(desk, 2, 101, "main");
	thread(desk, 3, 101, "other");
	desk->sink.thread_end(desk->pipeline, 4, 100, 101);
	desk->sink.thread_end(desk->pipeline, 4, 100, 101);
	sample_of(desk, 5, 100, 102, 1, (uint64_t[]){1}); /* whose birth was lost */
	assert_string_equal(read_back(desk), "s2=main\n1 thread 100/100 s2\n2 thread 100/101 "
										 "s2\ns3=other\n3 thread 100/101 s3\n4 thread end 101\n"
										 "s4=\n5 thread 100/102 s4\nstack 1 of 100 end 1: 0/1\n5 "
										 "sample 102 stack 1 metric 1 weight 0\n");
	assert_int_equal(pipeline_counters(desk->pipeline)->threads, 3);
}

static void defines_stacks_anew_when_code_was_replaced(void **state)
{
	struct desk *desk = *state;
	thread(desk, 1, 100, "main");
	map_at(desk, 2, 0x1000, 0x2000, 0, "/no/such/a.so");
	SAMPLE(desk, 3, 0x1010);
	map_at(desk, 4, 0x1000, 0x2000, 0, "/no/such/a.so");      /* the same again */
	map_at(desk, 4, 0x2000, 0x1000, 0x1000, "/no/such/a.so"); /* a part of it */
	map_at(desk, 4, 0x3000, 0x1000, 0, "/no/such/b.so");      /* behind it */
	SAMPLE(desk, 5, 0x1010);
	map_at(desk, 6, 0x2fff, 1, 0, "/no/such/b.so"); /* its last byte */
	SAMPLE(desk, 7, 0x1010);
	map_at(desk, 8, 0x1000, 0x1000, 0x5000, "/no/such/a.so"); /* another part of the same file */
	SAMPLE(desk, 9, 0x1010);
	assert_string_equal(read_back(desk),
		"s2=main\n1 thread 100/100 s2\n"
		"s3=/no/such/a.so\nimage 1 kind 1 s3\n2 mapping 1000+2000 @0 image 1\n"
		"stack 1 of 100 end 1: 0/1010\n3 sample 100 stack 1 metric 1 weight 0\n"
		"4 mapping 1000+2000 @0 image 1\n4 mapping 2000+1000 @1000 image 1\n"
		"s4=/no/such/b.so\nimage 2 kind 1 s4\n4 mapping 3000+1000 @0 image 2\n"
		"5 sample 100 stack 1 metric 1 weight 0\n"
		"6 mapping 2fff+1 @0 image 2\n"
		"stack 2 of 100 end 1: 0/1010\n7 sample 100 stack 2 metric 1 weight 0\n"
		"8 mapping 1000+1000 @5000 image 1\n"
		"stack 3 of 100 end 1: 0/1010\n9 sample 100 stack 3 metric 1 weight 0\n");
}

static void begins_anew_after_an_exec(void **state)
{
	struct desk *desk = *state;
	thread(desk, 1, 100, "main");
	map_at(desk, 2, 0x1000, 0x2000, 0, "/no/such/a.so");
	SAMPLE(desk, 3, 0x1010);
	desk->sink.process(desk->pipeline,
		&(struct sampler_process){
			.time_ns = 4, .pid = 100, .parent_pid = 7, .name = "next", .is_exec = true});
	thread(desk, 4, 100, "next");
	SAMPLE(desk, 5, 0x1010);
	assert_non_null(strstr(read_back(desk),
		"3 sample 100 stack 1 metric 1 weight 0\n"
		"s4=next\n4 process 100 of 7 s4 exec\n4 thread 100/100 s4\n"
		"stack 2 of 100 end 1: 0/1010\n5 sample 100 stack 2 metric 1 weight 0\n"));
}

static void does_not_define_stacks_anew_for_generated_code(void **state)
{
	struct desk *desk = *state;
	thread(desk, 1, 100, "main");
	map_at(desk, 2, 0x1000, 0x2000, 0, "//anon");
	map_at(desk, 2, 0x7000, 0x1000, 0, "[vdso]");
	map_at(desk, 2, 0x9000, 0x1000, 0, "[heap]");
	SAMPLE(desk, 3, 0x1010);
	map_at(desk, 4, 0x1000, 0x1000, 0, "//anon"); /* protected again */
	SAMPLE(desk, 5, 0x1010);
	assert_string_equal(read_back(desk),
		"s2=main\n1 thread 100/100 s2\n"
		"s3=//anon\nimage 1 kind 6 s3\n2 mapping 1000+2000 @0 image 1\n"
		"s4=[vdso]\nimage 2 kind 4 s4\n2 mapping 7000+1000 @0 image 2\n"
		"s5=[heap]\nimage 3 kind 0 s5\n2 mapping 9000+1000 @0 image 3\n"
		"stack 1 of 100 end 1: 0/1010\n3 sample 100 stack 1 metric 1 weight 0\n"
		"4 mapping 1000+1000 @0 image 1\n5 sample 100 stack 1 metric 1 weight 0\n");
}

static void keeps_the_file_that_was_mapped(void **state)
{
	struct desk *desk = *state;
	struct stat status;
	char path[] = "/tmp/test_pipeline-XXXXXX", text[8] = "";
	int fd = mkostemp(path, O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "code", 4), 4);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	struct sampler_mapping mapping = {
		.time_ns = 1,
		.pid = 100,
		.start = 0x1000,
		.length = 0x1000,
		.device_major = major(status.st_dev),
		.device_minor = minor(status.st_dev),
		.inode = status.st_ino,
		.protection = 5,
		.path = path,
	};
	desk->sink.mapping(desk->pipeline, &mapping);
	unlink(path);
	mapping.start = 0x4000;
	desk->sink.mapping(desk->pipeline, &mapping);
	size_t count;
	const struct pipeline_image *images = pipeline_images(desk->pipeline, &count);
	assert_int_equal(count, 1);
	assert_int_equal(images[0].id, 1);
	assert_int_equal(pread(images[0].fd, text, sizeof(text), 0), 4);
	assert_string_equal(text, "code");
	assert_non_null(strstr(read_back(desk), "image 1 kind 1 s2 open\n"));
}

static void writes_losses_times_and_the_end(void **state)
{
	struct desk *desk = *state;
	thread(desk, 1, 100, "main");
	SAMPLE(desk, 2, 0x10);
	desk->sink.loss(desk->pipeline, 3, SAMPLER_LOSS_RING, 7, 0);
	desk->sink.loss(desk->pipeline, 4, SAMPLER_LOSS_THROTTLED, 1, 3);
	desk->sink.loss(desk->pipeline, 5, SAMPLER_LOSS_MALFORMED, 1, -1);
	desk->sink.thread_end(desk->pipeline, 6, 100, 100);
	desk->sink.process_end(desk->pipeline, 6, 100);
	desk->sink.cpu_time(desk->pipeline, 7, 100, 123456789);
	pipeline_end(desk->pipeline, "target_exited", 8);
	assert_non_null(strstr(read_back(desk),
		"3 loss 0 count 7 cpu 1\n4 loss 1 count 1 cpu 4\n5 loss 2 count 1 cpu 0\n6 thread end "
		"100\n6 process end 100\n"
		"7 cpu time 123456789\ns3=target_exited\n8 end s3 samples 1 lost 8\n"));
	assert_int_equal(pipeline_cpu_time_ns(desk->pipeline), 123456789);
	assert_int_equal(pipeline_counters(desk->pipeline)->throttled, 1);
}

/* Waits until the file is longer; 0 when it does not become so. */
static off_t longer_than(struct desk *desk, off_t bytes, int wait_ms)
{
	struct stat status;
	for (int i = 0; i <= wait_ms; i++) {
		assert_int_equal(fstat(desk->fd, &status), 0);
		if (status.st_size > bytes) {
			return status.st_size;
		}
		usleep(1000);
	}
	return 0;
}

static void puts_what_it_has_on_disk_every_second(void **state)
{
	struct desk *desk = *state;
	uint64_t soon = UINT64_MAX / 2;
	thread(desk, 1, 100, "main");
	desk->sink.drained(desk->pipeline, soon);
	off_t bytes = longer_than(desk, 0, 5000);
	assert_true(bytes > 0);
	SAMPLE(desk, 2, 0x10);
	desk->sink.drained(desk->pipeline, soon + 999999999);
	assert_int_equal(longer_than(desk, bytes, 20), 0);
	desk->sink.drained(desk->pipeline, soon + 1000000000);
	assert_true(longer_than(desk, bytes, 5000) > bytes);
}

static void never_gives_an_id_twice_when_the_table_is_full(void **state)
{
	(void)state;
	struct stacks *stacks = stacks_create();
	assert_non_null(stacks);
	const uint64_t *frames;
	uint32_t last = 0;
	for (uint64_t i = 0; i < 3 * STACKS_MAX; i++) {
		uint64_t own[2] = {i, i * i};
		struct stacks_key key = {.pid = 1, .end = 1, .user_frames = own, .user_count = 2};
		uint32_t id = stacks_id(stacks, &key, &frames);
		assert_int_equal(id, last + 1);
		assert_memory_equal(frames, own, sizeof(own));
		assert_int_equal(stacks_id(stacks, &key, &frames), id);
		assert_null(frames);
		last = id;
	}
	stacks_destroy(stacks);
	stacks_destroy(NULL);
}

static void tells_kernel_from_user_in_a_stack(void **state)
{
	(void)state;
	struct stacks *stacks = stacks_create();
	const uint64_t *frames, own[] = {1, 2, 3};
	uint32_t ids[4];
	for (size_t i = 0; i < 4; i++) {
		struct stacks_key key = {.pid = 1,
			.kernel_frames = own,
			.kernel_count = i,
			.user_frames = own + i,
			.user_count = 3 - i};
		ids[i] = stacks_id(stacks, &key, &frames);
		assert_memory_equal(frames, own, sizeof(own));
		for (size_t before = 0; before < i; before++) {
			assert_int_not_equal(ids[i], ids[before]);
		}
	}
	stacks_destroy(stacks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(defines_each_stack_once),
		CASE(drops_other_processes),
		CASE(leaves_the_kernel_out_when_it_is_not_wanted),
		cmocka_unit_test_setup_teardown(
			puts_the_kernel_before_the_user_when_it_is_wanted, setup_with_kernel, teardown),
		CASE(cuts_a_stack_where_its_return_addresses_leave_the_code),
		CASE(tells_a_cut_stack_from_a_whole_one),
		CASE(knows_every_sampled_thread),
		CASE(defines_stacks_anew_when_code_was_replaced),
		CASE(begins_anew_after_an_exec),
		CASE(does_not_define_stacks_anew_for_generated_code),
		CASE(keeps_the_file_that_was_mapped),
		CASE(writes_losses_times_and_the_end),
		CASE(puts_what_it_has_on_disk_every_second),
		cmocka_unit_test(never_gives_an_id_twice_when_the_table_is_full),
		cmocka_unit_test(tells_kernel_from_user_in_a_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
