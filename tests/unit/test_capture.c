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
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "protocol/limits.h"
#include "support/capture_stage.h"
#include "target/target.h"
#include "support/entries.h"

static void a_program_that_ends_leaves_its_artifacts(void **state)
{
	struct capture_stage *stage = *state;
	stage_play(stage, "ok", 100);
	assert_string_equal(stage_event_names(), "Started Progress Finished forgotten");
	const json_t *finished = stage_event_params("SamplingProfileFinished");
	assert_string_equal(stage_member(finished, "reason"), "target_exited");
	assert_int_equal(stage_number(finished, "samples"), 100);
	assert_int_equal(stage_number(finished, "build_id"), 7);
	assert_int_equal(stage_number(finished, "pid"), getpid());
	assert_int_equal(json_array_size(json_object_get(finished, "artifacts")), 4);
	assert_string_equal(stage_read_file(stage_member(finished, "folded_path")), "this is folded\n");
	assert_string_equal(stage_read_file(stage_member(finished, "svg_path")), "this is svg\n");
	assert_string_equal(stage_read_file(stage_member(finished, "metadata_path")), "this is json\n");
	/* journal, four artifacts, record */
	assert_int_equal(entries_count(stage_folder_of(stage)), 6);
	const json_t *artifact = json_array_get(json_object_get(finished, "artifacts"), 0);
	assert_int_equal(stage_number(artifact, "bytes"), strlen("this is folded\n"));
	assert_true(stage->was_told);
	assert_int_equal(stage_number(stage->told, "exit_code"), 3);
	assert_string_equal(stage_member(stage->told, "state"), "finished");
	assert_true(json_equal(stage->told, store_next(stage->store, "")));
}

static void the_record_carries_what_the_terminal_event_carried(void **state)
{
	struct capture_stage *stage = *state;
	stage_play(stage, "ok", 100);
	const json_t *finished = stage_event_params("SamplingProfileFinished");
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)finished, key, value)
	{
		assert_true(json_equal(value, json_object_get(stage->told, key)));
	}
}

static void only_the_wanted_artifacts_are_made(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.write_svg = false;
	stage->options.write_json = false;
	stage_play(stage, "ok", 100);
	const json_t *finished = stage_event_params("SamplingProfileFinished");
	assert_int_equal(json_array_size(json_object_get(finished, "artifacts")), 2);
	assert_true(json_is_null(json_object_get(finished, "svg_path")));
	assert_int_equal(entries_count(stage_folder_of(stage)), 4);
}

static void a_held_program_is_armed_until_it_runs(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.label = "ok";
	struct capture *capture = stage_start(stage);
	json_t *effective = capture_effective(capture);
	assert_true(stage_sampler.is_gated);
	assert_string_equal(stage_member(effective, "state"), "armed");
	assert_string_equal(stage_member(effective, "sampler"), "perf");
	assert_string_equal(stage_member(effective, "unwinder"), "fp");
	assert_string_equal(
		stage_member(json_array_get(json_object_get(effective, "warnings"), 0), "code"),
		"rings_small");
	json_decref(effective);
	uv_run(&stage->loop, UV_RUN_NOWAIT);
	assert_string_equal(stage_event_names(), "");
	stage_process_becomes(&stage->process, PROCESS_RUNNING);
	assert_string_equal(stage_event_names(), "Started");
	stage_emit(1, 3);
	stage_run_until_event(stage, "Progress");
	const json_t *progress = stage_event_params("SamplingProfileProgress");
	assert_string_equal(stage_member(progress, "state"), "sampling");
	assert_int_equal(stage_number(progress, "samples"), 1);
	assert_true(json_is_null(json_object_get(progress, "permille")));
	capture_stop(capture, "stopped", false);
	capture_stop(capture, "stopped", false);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_member(stage->told, "reason"), "stopped");
}

static void a_running_program_is_announced_in_a_later_turn(void **state)
{
	struct capture_stage *stage = *state;
	stage->process.state = PROCESS_RUNNING;
	stage->options.label = "ok";
	struct capture *capture = stage_start(stage);
	json_t *effective = capture_effective(capture);
	assert_string_equal(stage_member(effective, "state"), "sampling");
	json_decref(effective);
	assert_false(stage_sampler.is_gated);
	assert_string_equal(stage_event_names(), "");
	stage_run_until_event(stage, "Started");
	stage_emit(5, 3);
	capture_stop(capture, "stopped", false);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Started Progress Finished forgotten");
}

static void the_duration_counts_from_the_first_instruction(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.label = "ok";
	stage->options.duration_ms = 200;
	stage_start(stage);
	uint64_t limit = clock_monotonic_ns() + 300000000;
	while (clock_monotonic_ns() < limit) {
		uv_run(&stage->loop, UV_RUN_NOWAIT);
		usleep(10000);
	}
	assert_string_equal(stage_event_names(), "");
	uint64_t begun = clock_monotonic_ns();
	uv_update_time(&stage->loop);
	stage_process_becomes(&stage->process, PROCESS_RUNNING);
	stage_emit(5, 3);
	while (stage_sampler.runs) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
	uint64_t lasted_ms = (clock_monotonic_ns() - begun) / 1000000;
	assert_in_range(lasted_ms, 198, 2000);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_member(stage->told, "reason"), "duration");
	const json_t *progress = json_object_get(json_array_get(stage_events, 1), "params");
	assert_in_range(stage_number(progress, "permille"), 1, 1000);
	assert_int_equal(stage_number(progress, "duration_ms"), 200);
}

static void the_journal_can_have_a_limit(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.max_bytes = 300000;
	stage_start_running(stage, "ok");
	stage_emit(2000, 127);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_member(stage->told, "reason"), "limit");
	assert_true(stage_number(stage->told, "samples") > 0);
}

static void one_capture_per_process_at_a_time(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.label = "ok";
	struct capture *capture = stage_start(stage);
	size_t folders = entries_count(stage->data);
	struct error err = stage_refuse(stage, ERROR_CAPTURE_BUSY);
	assert_string_equal(err.detail, "already_sampled");
	assert_non_null(strstr(err.message, capture_id(capture)));
	assert_int_equal(entries_count(stage->data), folders);
	assert_ptr_equal(captures_find(stage->captures, capture_id(capture)), capture);
	assert_ptr_equal(captures_next(stage->captures, NULL), capture);
	assert_null(captures_next(stage->captures, capture));
	capture_stop(capture, "stopped", false);
	stage_run_to_the_end(stage);
}

static void too_many_captures_are_refused(void **state)
{
	struct capture_stage *stage = *state;
	struct process processes[LIMIT_RUNNING_CAPTURES + 1];
	struct error err = {0};
	for (size_t i = 0; i <= LIMIT_RUNNING_CAPTURES; i++) {
		processes[i] = (struct process){
			.state = PROCESS_HELD, .build_id = json_integer((json_int_t)i), .pid = 100 + (pid_t)i};
		stage->options.process = &processes[i];
		struct capture *capture = captures_start(stage->captures, &stage->options, &err);
		assert_int_equal(capture != NULL, i < LIMIT_RUNNING_CAPTURES);
	}
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	for (struct capture *capture = NULL;
		 (capture = captures_next(stage->captures, capture)) != NULL;) {
		capture_stop(capture, "stopped", true);
	}
	stage_run_to_the_end(stage);
	for (size_t i = 0; i <= LIMIT_RUNNING_CAPTURES; i++) {
		json_decref(processes[i].build_id);
	}
}

static void a_build_that_ended_is_refused(void **state)
{
	struct capture_stage *stage = *state;
	stage->process.state = PROCESS_EXITED;
	stage_refuse(stage, ERROR_BUILD_NOT_RUNNING);
}

static void a_pid_that_waits_behind_no_gate_is_refused(void **state)
{
	struct capture_stage *stage = *state;
	stage->options.process = NULL;
	stage->options.pid = getpid();
	struct error err = stage_refuse(stage, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "does not wait behind profd-gate"));
	pid_t pid = fork();
	if (pid == 0) {
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	stage->options.pid = pid;
	stage_refuse(stage, ERROR_PROCESS_NOT_FOUND);
}

static void a_sampler_that_refuses_leaves_nothing(void **state)
{
	struct capture_stage *stage = *state;
	stage_sampler.refuses = true;
	stage_refuse(stage, ERROR_HZ_TOO_HIGH);
	assert_int_equal(stage_count_captures(stage), 0);
	assert_int_equal(store_count(stage->store), 0);
	stage->options.output_dir = "relative";
	stage_refuse(stage, ERROR_BAD_PARAMS);
	assert_int_equal(stage_count_captures(stage), 0);
	assert_string_equal(stage_event_names(), "");
}

/* A shell that bears the gate's name and becomes another program when a line comes. */
static pid_t fork_gate(struct capture_stage *stage, int *go)
{
	int ends[2];
	char command[256], path[128];
	snprintf(path, sizeof(path), "%s/profd-gate", stage->path);
	snprintf(command, sizeof(command), "cp -L /bin/sh %s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[0], 0);
		execl(path, "profd-gate", "-c", "read word && exec sleep 60; exit 125", (char *)NULL);
		_exit(127);
	}
	close(ends[0]);
	*go = ends[1];
	for (int i = 0; i < 1000 && !target_is_gate(pid); i++) {
		usleep(10000);
	}
	return pid;
}

/* A capture of such a shell. */
static pid_t start_behind_gate(struct capture_stage *stage, int *go)
{
	pid_t pid = fork_gate(stage, go);
	stage->options.process = NULL;
	stage->options.pid = pid;
	stage->options.label = "ok";
	stage_start(stage);
	return pid;
}

static void a_pid_behind_a_gate_is_sampled_from_its_exec(void **state)
{
	struct capture_stage *stage = *state;
	int go;
	pid_t pid = start_behind_gate(stage, &go);
	assert_true(stage_sampler.is_gated);
	for (int i = 0; i < 5; i++) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
	assert_string_equal(stage_event_names(), "");
	assert_int_equal(write(go, "\n", 1), 1);
	stage_run_until_event(stage, "Started");
	assert_true(
		json_is_null(json_object_get(stage_event_params("SamplingProfileStarted"), "build_id")));
	stage_emit(10, 3);
	assert_int_equal(kill(pid, SIGKILL), 0);
	stage_run_to_the_end(stage);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(go);
	assert_string_equal(stage_member(stage->told, "reason"), "target_exited");
	assert_int_equal(stage_number(stage->told, "pid"), pid);
}

static void a_program_behind_a_gate_may_be_over_before_it_is_seen(void **state)
{
	struct capture_stage *stage = *state;
	int go;
	pid_t pid = start_behind_gate(stage, &go);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	stage_emit(10, 3);
	stage_run_to_the_end(stage);
	close(go);
	assert_string_equal(stage_event_names(), "Started Progress Finished forgotten");
	assert_true(stage_number(stage->told, "started_unix_us") > 0);
}

static void a_gate_that_gives_up_has_no_samples(void **state)
{
	struct capture_stage *stage = *state;
	int go;
	stage_sampler.cpu_time_ns = 0;
	pid_t pid = start_behind_gate(stage, &go);
	close(go);
	stage_run_to_the_end(stage);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(stage_event_names(), "Failed forgotten");
	assert_string_equal(stage_failure_message(), "the target ended before its program began");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(int argc, char **argv)
{
	stage_begin(argc, argv);
	const struct CMUnitTest tests[] = {
		CASE(a_program_that_ends_leaves_its_artifacts),
		CASE(the_record_carries_what_the_terminal_event_carried),
		CASE(only_the_wanted_artifacts_are_made),
		CASE(a_held_program_is_armed_until_it_runs),
		CASE(a_running_program_is_announced_in_a_later_turn),
		CASE(the_duration_counts_from_the_first_instruction),
		CASE(the_journal_can_have_a_limit),
		CASE(one_capture_per_process_at_a_time),
		CASE(too_many_captures_are_refused),
		CASE(a_build_that_ended_is_refused),
		CASE(a_pid_that_waits_behind_no_gate_is_refused),
		CASE(a_pid_behind_a_gate_is_sampled_from_its_exec),
		CASE(a_program_behind_a_gate_may_be_over_before_it_is_seen),
		CASE(a_gate_that_gives_up_has_no_samples),
		CASE(a_sampler_that_refuses_leaves_nothing),
	};
	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
