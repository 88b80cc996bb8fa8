#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/analyzer.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "support/capture_stage.h"

static void no_samples_says_how_little_the_program_did(void **state)
{
	struct capture_stage *stage = *state;
	stage_sampler.cpu_time_ns = 430000;
	stage_play(stage, "ok", 0);
	assert_string_equal(stage_event_names(), "Started Failed forgotten");
	assert_string_equal(stage_failure_code(), "no_samples");
	assert_string_equal(stage_failure_message(),
		"the target ended after 0.4 ms of CPU time, less than one sampling period of 1.0 ms");
	assert_string_equal(stage_member(stage->told, "state"), "failed");
	stage_assert_only_the_journal_is_kept(stage);
}

static void a_program_that_never_ran_has_no_samples(void **state)
{
	struct capture_stage *stage = *state;
	stage_sampler.cpu_time_ns = 0;
	capture_stop(stage_start(stage), "stopped", false);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Failed forgotten");
	assert_string_equal(stage_failure_message(), "the target had not begun to run");
}

/* Plays again from the beginning, nothing told yet. */
static void play_anew(struct capture_stage *stage, const char *label)
{
	json_array_clear(stage_events);
	json_decref(stage->told);
	stage->process.state = PROCESS_HELD;
	stage_play(stage, label, 20);
}

static void an_analyzer_that_crashes_costs_only_the_names(void **state)
{
	struct capture_stage *stage = *state;
	static const struct {
		const char *label, *says;
	} cases[] = {
		{"crash", "the analyzer was ended by SIGKILL (by somebody, or because"},
		{"fault", "the analyzer was ended by SIGSEGV; functions are not named"},
		{"cpu",
			"the analyzer was ended by SIGXCPU (it used all of its 600 s of CPU time); functions"},
		{"call",
			"the analyzer was ended by SIGSYS (it made a system call that its sandbox does not"},
		{"exit", "the analyzer exited with status 3 before it had done; functions are not named"},
		{"garbage", "the analyzer sent what is no message"},
		{"fails", "the analyzer says so; functions are not named"},
		{"no counts", "the analyzer's result lacks its counts or summary; functions are not named"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		play_anew(stage, cases[i].label);
		const json_t *finished = stage_event_params("SamplingProfileFinished");
		const json_t *warning = json_array_get(json_object_get(finished, "warnings"), 1);
		assert_string_equal(stage_member(warning, "code"), "analyzer_failed");
		assert_memory_equal(stage_member(warning, "message"), cases[i].says, strlen(cases[i].says));
		assert_int_equal(stage_number(finished, "samples"), 20);
		assert_string_equal(
			stage_read_file(stage_member(finished, "folded_path")), "this is folded\n");
	}
}

static void an_analyzer_that_always_crashes_fails_the_capture_and_keeps_the_journal(void **state)
{
	struct capture_stage *stage = *state;
	stage_play(stage, "crash always", 20);
	assert_string_equal(stage_event_names(), "Started Progress Failed forgotten");
	assert_string_equal(stage_failure_code(), "internal");
	stage_assert_only_the_journal_is_kept(stage);
}

static void an_analyzer_that_cannot_start_fails_the_capture(void **state)
{
	struct capture_stage *stage = *state;
	static const char *const paths[] = {"/nonexistent/profd-analyzer", "/bin/false", "/etc/passwd"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		stage_create_captures(stage, paths[i]);
		play_anew(stage, "ok");
		assert_string_equal(stage_failure_code(), "internal");
		uv_run(&stage->loop, UV_RUN_DEFAULT);
	}
	stage_assert_only_the_journal_is_kept(stage);
}

static void a_disk_that_is_full_of_artifacts_fails_with_the_journal_kept(void **state)
{
	struct capture_stage *stage = *state;
	stage_play(stage, "disk full", 20);
	assert_string_equal(stage_failure_code(), "disk_full");
	stage_assert_only_the_journal_is_kept(stage);
}

static void artifacts_come_all_or_none(void **state)
{
	struct capture_stage *stage = *state;
	char path[4200];
	stage_play(stage, "block svg", 20);
	assert_string_equal(stage_failure_code(), "io");
	snprintf(path, sizeof(path), "%s/capture.folded", stage_folder_of(stage));
	assert_int_equal(access(path, F_OK), -1);
	assert_true(json_is_null(json_object_get(stage->told, "folded_path")));
}

/* A program that is sampled on a disk with so much room. */
static void play_on_small_disk(struct capture_stage *stage, const char *label, rlim_t bytes)
{
	struct rlimit before, limit;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	stage_start_running(stage, label);
	stage_emit(4000, 127);
	stage_run_to_the_end(stage);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void a_disk_that_fills_while_sampling_ends_it_with_what_was_kept(void **state)
{
	struct capture_stage *stage = *state;
	play_on_small_disk(stage, "ok", 300000);
	assert_string_equal(stage_event_names(), "Started Progress Finished forgotten");
	assert_string_equal(stage_member(stage->told, "reason"), "disk_full");
	assert_in_range(stage_number(stage->told, "samples"), 100, 3999);
	assert_string_equal(
		stage_read_file(stage_member(stage->told, "folded_path")), "this is folded\n");
}

static void a_disk_without_room_for_one_chunk_fails(void **state)
{
	struct capture_stage *stage = *state;
	play_on_small_disk(stage, "empty", 10000);
	assert_string_equal(stage_failure_code(), "disk_full");
	stage_assert_only_the_journal_is_kept(stage);
}

static void assert_discarded(struct capture_stage *stage)
{
	assert_true(stage->was_told);
	assert_null(stage->told);
	assert_string_equal(stage_failure_code(), "cancelled");
	assert_int_equal(store_count(stage->store), 0);
	assert_int_equal(stage_count_captures(stage), 0);
}

static void discarding_while_sampling_deletes_everything(void **state)
{
	struct capture_stage *stage = *state;
	struct capture *capture = stage_start_running(stage, NULL);
	stage_emit(100, 10);
	capture_stop(capture, "stopped", true);
	stage_run_to_the_end(stage);
	assert_discarded(stage);
}

static void discarding_while_it_ends_deletes_everything(void **state)
{
	struct capture_stage *stage = *state;
	struct capture *capture = stage_start_running(stage, "slow");
	stage_emit(100, 10);
	capture_stop(capture, "stopped", false);
	stage_run_until_event(stage, "Progress");
	capture_stop(capture, "stopped", true);
	capture_stop(capture, "stopped", true);
	assert_null(strstr(stage_event_names(), "Failed"));
	stage_run_to_the_end(stage);
	assert_discarded(stage);
}

static void an_armed_capture_can_be_undone_in_silence(void **state)
{
	struct capture_stage *stage = *state;
	struct error err = {0};
	struct capture *capture = captures_start(stage->captures, &stage->options, &err);
	char id[64];
	strcpy(id, capture_id(capture));
	capture_cancel_armed(capture);
	assert_null(captures_find(stage->captures, id));
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "forgotten");
	assert_int_equal(stage_count_captures(stage), 0);
}

static void a_program_whose_exec_fails_is_told_as_launch_failed(void **state)
{
	struct capture_stage *stage = *state;
	struct error err = {0};
	stage_start(stage);
	error_set(&err, ERROR_LAUNCH_FAILED, "exec failed");
	struct process_watch *watch = stage->process.watches;
	watch->ops->failed(watch->context, &stage->process, &err);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_failure_code(), "launch_failed");
}

static void what_a_boundless_analyzer_says_is_bounded(void **state)
{
	struct capture_stage *stage = *state;
	stage_play(stage, "huge", 20);
	char *text = json_dumps(stage->told, JSON_COMPACT);
	assert_non_null(text);
	assert_true(strlen(text) < LIMIT_LINE_BYTES);
	free(text);
	const json_t *top = json_object_get(json_object_get(stage->told, "summary"), "top");
	assert_int_equal(json_array_size(top), LIMIT_EVENT_LIST);
}

static void a_waiter_that_left_is_not_told(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.label = "ok";
	struct capture *capture = stage_start(stage);
	capture_unwait(&stage->wait);
	capture_unwait(&stage->wait);
	capture_stop(capture, "stopped", true);
	stage_run_to_the_end(stage);
	assert_false(stage->was_told);
}

/* The analyzer alone. */

static struct error analyzer_said;

static void take_failure(void *context, const struct error *err)
{
	analyzer_said = *err;
	*(bool *)context = true;
}

static void take_progress(void *context, unsigned permille, bool is_writing)
{
	(void)context;
	(void)permille;
	(void)is_writing;
}

static void take_done(void *context, const json_t *body)
{
	(void)context;
	(void)body;
	fail();
}

static void set_flag(void *context)
{
	*(bool *)context = true;
}

static void an_analyzer_that_says_nothing_is_killed(void **state)
{
	struct capture_stage *stage = *state;
	static const struct analyzer_ops ops = {take_progress, take_done, take_failure};
	struct error err = {0};
	struct artifacts artifacts;
	bool failed = false, closed = false;
	json_t *facts = json_pack("{s:s}", "label", "slow");
	struct analyzer_options options = {.loop = &stage->loop,
		.path = stage->self,
		.ops = &ops,
		.context = &failed,
		.stall_ms = 300};
	artifacts_init(&artifacts, -1);
	struct analyzer *analyzer = analyzer_start(&options, &err);
	assert_non_null(analyzer);
	int journal = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct analyzer_input input = {.capture_id = "x",
		.symbols = true,
		.journal_fd = journal,
		.kernel_symbols_fd = -1,
		.artifacts = &artifacts,
		.facts = facts};
	analyzer_feed(analyzer, &input);
	while (!failed) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
	assert_string_equal(
		analyzer_said.message, "the analyzer made no progress for 300 ms and was ended");
	analyzer_close(analyzer, true, set_flag, &closed);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_true(closed);
	json_decref(facts);
	close(journal);
}

/* More descriptors than the channel holds at once: they wait until it has room. */
static void an_analyzer_is_fed_more_than_its_channel_holds(void **state)
{
	struct capture_stage *stage = *state;
	struct capture *capture = stage_start_running(stage, "ok");
	char path[128];
	for (int i = 0; i < 150; i++) {
		struct stat status;
		snprintf(path, sizeof(path), "%s/image%d", stage->path, i);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
		assert_int_equal(fstat(fd, &status), 0);
		close(fd);
		struct sampler_mapping mapping = {.time_ns = clock_monotonic_ns(),
			.pid = stage_sampler.pid,
			.start = 0x10000000 + (uint64_t)i * 0x10000,
			.length = 0x1000,
			.protection = PROT_EXEC | PROT_READ,
			.device_major = (uint32_t)(status.st_dev >> 8 & 0xff),
			.device_minor = (uint32_t)(status.st_dev & 0xff),
			.inode = status.st_ino,
			.path = path};
		stage_sampler.sink.mapping(stage_sampler.sink.context, &mapping);
	}
	stage_emit(10, 5);
	capture_stop(capture, "stopped", false);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_member(stage->told, "state"), "finished");
	assert_int_equal(stage_number(stage->told, "samples"), 10);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(int argc, char **argv)
{
	stage_begin(argc, argv);
	const struct CMUnitTest tests[] = {
		CASE(no_samples_says_how_little_the_program_did),
		CASE(a_program_that_never_ran_has_no_samples),
		CASE(an_analyzer_that_crashes_costs_only_the_names),
		CASE(an_analyzer_that_always_crashes_fails_the_capture_and_keeps_the_journal),
		CASE(an_analyzer_that_cannot_start_fails_the_capture),
		CASE(a_disk_that_is_full_of_artifacts_fails_with_the_journal_kept),
		CASE(artifacts_come_all_or_none),
		CASE(a_disk_that_fills_while_sampling_ends_it_with_what_was_kept),
		CASE(a_disk_without_room_for_one_chunk_fails),
		CASE(discarding_while_sampling_deletes_everything),
		CASE(discarding_while_it_ends_deletes_everything),
		CASE(an_armed_capture_can_be_undone_in_silence),
		CASE(a_program_whose_exec_fails_is_told_as_launch_failed),
		CASE(what_a_boundless_analyzer_says_is_bounded),
		CASE(a_waiter_that_left_is_not_told),
		CASE(an_analyzer_that_says_nothing_is_killed),
		CASE(an_analyzer_is_fed_more_than_its_channel_holds),
	};
	return cmocka_run_group_tests_name("capture_end", tests, NULL, NULL);
}
