#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/pipeline_desk.h"

static void drops_other_processes(void **state)
{
	struct desk *desk = *state;
	desk_sample_of(desk, 1, 101, 101, 1, (uint64_t[]){1});
	desk_sample_of(desk, 2, 0, 0, 1, (uint64_t[]){1});
	desk->sink.process(desk->pipeline,
		&(struct sampler_process){
			.time_ns = 3, .pid = 101, .parent_pid = 100, .name = "x", .is_fork = true});
	desk->sink.thread(desk->pipeline, &(struct sampler_thread){4, 101, 101, "x"});
	desk->sink.thread_end(desk->pipeline, 5, 101, 101);
	desk->sink.process_end(desk->pipeline, 6, 101);
	desk->sink.cpu_time(desk->pipeline, &(struct sampler_cpu_time){7, 101, 0, 5, 4, 1});
	assert_string_equal(desk_read_back(desk), "");
	assert_int_equal(pipeline_counters(desk->pipeline)->samples, 0);
}

static void knows_every_sampled_thread(void **state)
{
	struct desk *desk = *state;
	desk_thread(desk, 1, 100, "main");
	desk_thread(desk, 1, 100, "main");
	desk_thread(desk, 2, 101, "main");
	desk_thread(desk, 3, 101, "other");
	desk->sink.thread_end(desk->pipeline, 4, 100, 101);
	desk->sink.thread_end(desk->pipeline, 4, 100, 101);
	desk_sample_of(desk, 5, 100, 102, 1, (uint64_t[]){1}); /* whose birth was lost */
	assert_string_equal(desk_read_back(desk),
		"s2=main\n1 thread 100/100 s2\n2 thread 100/101 "
		"s2\ns3=other\n3 thread 100/101 s3\n4 thread end 101\n"
		"s4=\n5 thread 100/102 s4\nstack 1 of 100 end 1: 0/1\n5 "
		"sample 102 stack 1 metric 1 weight 0\n");
	assert_int_equal(pipeline_counters(desk->pipeline)->threads, 3);
}

/* A file that goes right after it was told of, by mapped or only by mapping, and is mapped again. */
static void check_that_the_file_is_kept(struct desk *desk, bool told_early)
{
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
	if (told_early) {
		desk->sink.mapped(desk->pipeline, &mapping);
		unlink(path);
	}
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
	const char *text_of_image = strstr(desk_read_back(desk), "image 1 kind 1 s2 open\n");
	assert_non_null(text_of_image);
	assert_null(strstr(text_of_image + 1, "image 1 kind"));
	const char *first = strstr(text_of_image, "mapping");
	assert_non_null(first);
	assert_non_null(strstr(first + 1, "mapping"));
}

static void keeps_the_file_that_was_mapped(void **state)
{
	check_that_the_file_is_kept(*state, false);
}

static void opens_a_file_before_the_mapping_has_its_turn(void **state)
{
	check_that_the_file_is_kept(*state, true);
}

static void writes_losses_times_and_the_end(void **state)
{
	struct desk *desk = *state;
	desk_thread(desk, 1, 100, "main");
	SAMPLE(desk, 2, 0x10);
	desk->sink.loss(desk->pipeline, 3, SAMPLER_LOSS_RING, 7, 0);
	desk->sink.loss(desk->pipeline, 4, SAMPLER_LOSS_THROTTLED, 1, 3);
	desk->sink.loss(desk->pipeline, 5, SAMPLER_LOSS_MALFORMED, 1, -1);
	desk->sink.throttled(desk->pipeline, 5, 4000000);
	desk->sink.cpu_time(desk->pipeline, &(struct sampler_cpu_time){5, 100, 0, 9, 0, 0});
	desk->sink.cpu_time(desk->pipeline, &(struct sampler_cpu_time){5, 100, 100, 8, 7, 1});
	desk->sink.thread_end(desk->pipeline, 6, 100, 100);
	desk->sink.process_end(desk->pipeline, 6, 100);
	/* A thread that is gone, and perhaps another has its number. */
	desk->sink.cpu_time(desk->pipeline, &(struct sampler_cpu_time){6, 100, 100, 8, 7, 1});
	desk->sink.cpu_time(
		desk->pipeline, &(struct sampler_cpu_time){7, 100, 0, 123456789, 23456789, 100000000});
	pipeline_end(desk->pipeline, "target_exited", 8);
	assert_non_null(strstr(desk_read_back(desk),
		"3 loss 0 count 7 cpu 1 withheld 0\n4 loss 1 count 1 cpu 4 withheld 0\n"
		"5 loss 2 count 1 cpu 0 withheld 0\n5 loss 1 count 0 cpu 0 withheld 4000000\n"
		"5 cpu time of 0: 9 user 0 system 0\n5 cpu time of 100: 8 user 7 system 1\n"
		"6 thread end 100\n6 process end 100\n"
		"7 cpu time of 0: 123456789 user 23456789 system 100000000\n"
		"s3=target_exited\n8 end s3 samples 1 lost 8\n"));
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
	desk_thread(desk, 1, 100, "main");
	desk->sink.drained(desk->pipeline, soon);
	off_t bytes = longer_than(desk, 0, 5000);
	assert_true(bytes > 0);
	SAMPLE(desk, 2, 0x10);
	desk->sink.drained(desk->pipeline, soon + 999999999);
	assert_int_equal(longer_than(desk, bytes, 20), 0);
	desk->sink.drained(desk->pipeline, soon + 1000000000);
	assert_true(longer_than(desk, bytes, 5000) > bytes);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, desk_set_up, desk_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(drops_other_processes),
		CASE(knows_every_sampled_thread),
		CASE(keeps_the_file_that_was_mapped),
		CASE(opens_a_file_before_the_mapping_has_its_turn),
		CASE(writes_losses_times_and_the_end),
		CASE(puts_what_it_has_on_disk_every_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
