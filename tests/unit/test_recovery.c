#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/capture_stage.h"
#include "support/entries.h"

/* Captures that another daemon left: made here by one that ended, whose record is put back to what it was before. */

static const char *oldest_id(struct capture_stage *stage)
{
	return stage_member(store_next(stage->store, ""), "capture_id");
}

static void own_path(struct capture_stage *stage, const char *id, const char *name, char path[512])
{
	snprintf(path, 512, "%s/captures/%s/%s", stage->data, id, name);
}

/* As if the daemon had been killed while it was in that state; extra: further members of the record, or NULL. */
static void put_back(struct capture_stage *stage, const char *id, const char *state, json_t *extra)
{
	char path[512], command[1200];
	json_t *record = json_deep_copy(store_get(stage->store, id));
	static const char *const later[] = {
		"reason", "summary", "artifacts", "folded_path", "svg_path", "metadata_path", "error"};
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		json_object_del(record, later[i]);
	}
	json_object_set_new(record, "state", json_string(state));
	json_object_set_new(record, "ended_unix_us", json_null());
	if (extra != NULL) {
		json_object_update(record, extra);
		json_decref(extra);
	}
	own_path(stage, id, "record.json", path);
	assert_int_equal(json_dump_file(record, path, 0), 0);
	json_decref(record);
	own_path(stage, id, "", path);
	snprintf(
		command, sizeof(command), "rm -f %s/capture.svg; touch %s/.capture.svg.tmp", path, path);
	assert_int_equal(system(command), 0);
}

/* The next daemon. */
static void restart(struct capture_stage *stage)
{
	struct error err = {0};
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	captures_destroy(stage->captures);
	stage->captures = NULL;
	store_close(stage->store);
	stage->store = store_open(stage->data, &err);
	assert_non_null(stage->store);
	json_array_clear(stage_events);
	stage_create_captures(stage, stage->self);
	captures_recover(stage->captures);
}

static void play_and_put_back(struct capture_stage *stage, const char *label, const char *state)
{
	char id[32];
	stage_play(stage, label, 20);
	stage->process.state = PROCESS_HELD;
	snprintf(id, sizeof(id), "%s", stage_member(stage->told, "capture_id"));
	json_decref(stage->told);
	stage->told = NULL;
	put_back(stage, id, state, NULL);
}

static bool has_warning(const json_t *params, const char *code)
{
	size_t i;
	json_t *warning;
	json_array_foreach(json_object_get(params, "warnings"), i, warning)
	{
		if (strcmp(stage_member(warning, "code"), code) == 0) {
			return true;
		}
	}
	return false;
}

static void an_unfinished_capture_is_finished_from_its_journal(void **state)
{
	struct capture_stage *stage = *state;
	static const char *const states[] = {"armed", "sampling", "symbolizing", "writing"};
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		play_and_put_back(stage, "ok", states[i]);
		restart(stage);
		assert_int_equal(captures_running(stage->captures), 1);
		struct capture *capture = captures_next(stage->captures, NULL);
		json_t *record = capture_record(capture);
		assert_string_equal(stage_member(record, "state"), "symbolizing");
		json_decref(record);
		stage_run_to_the_end(stage);
		assert_string_equal(stage_event_names(), "Progress Finished CaptureRecovered forgotten");
		const json_t *finished = stage_event_params("SamplingProfileFinished");
		assert_string_equal(stage_member(finished, "reason"), "recovered");
		assert_string_equal(stage_member(finished, "label"), "ok");
		assert_int_equal(stage_number(finished, "build_id"), 7);
		assert_int_equal(stage_number(finished, "samples"), 20);
		assert_true(has_warning(finished, "recovered") && has_warning(finished, "rings_small"));
		assert_string_equal(stage_read_file(stage_member(finished, "svg_path")), "this is svg\n");
		uv_run(&stage->loop, UV_RUN_DEFAULT);
		const json_t *kept = store_get(stage->store, stage_member(finished, "capture_id"));
		assert_string_equal(stage_member(kept, "state"), "finished");
		assert_int_equal(stage_number(kept, "exit_code"), 3);
		assert_null(json_object_get(kept, "recoveries"));
		assert_true(stage_number(kept, "ended_unix_us") >= stage_number(kept, "started_unix_us"));
		assert_int_equal(entries_count(stage_member(kept, "folder")), 6);
	}
}

static void a_capture_without_samples_is_failed_as_interrupted(void **state)
{
	struct capture_stage *stage = *state;
	char id[32], path[512];
	stage_play(stage, "ok", 0);
	snprintf(id, sizeof(id), "%s", oldest_id(stage));
	put_back(stage, id, "sampling", NULL);
	restart(stage);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Failed CaptureRecovered forgotten");
	assert_string_equal(stage_failure_code(), "interrupted");
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	stage_assert_only_the_journal_is_kept(stage);

	/* Nor is one without a journal, or with one that is none. */
	static const char *const commands[] = {"rm %s", "echo nonsense >%s", "rm %s; mkdir %s"};
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char command[1200];
		put_back(stage, id, "sampling", NULL);
		own_path(stage, id, "capture.journal", path);
		snprintf(command, sizeof(command), commands[i], path, path);
		assert_int_equal(system(command), 0);
		restart(stage);
		stage_run_to_the_end(stage);
		assert_string_equal(stage_failure_code(), "interrupted");
		uv_run(&stage->loop, UV_RUN_DEFAULT);
	}
}

static void an_analyzer_that_crashes_twice_fails_it_and_keeps_the_journal(void **state)
{
	struct capture_stage *stage = *state;
	play_and_put_back(stage, "crash always", "sampling");
	restart(stage);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Progress Failed CaptureRecovered forgotten");
	assert_string_equal(stage_failure_code(), "internal");
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	stage_assert_only_the_journal_is_kept(stage);
	restart(stage);
	assert_int_equal(captures_running(stage->captures), 0);
}

static void one_that_never_ended_is_not_tried_for_ever(void **state)
{
	struct capture_stage *stage = *state;
	char id[32];
	stage_play(stage, "ok", 20);
	snprintf(id, sizeof(id), "%s", oldest_id(stage));
	put_back(stage, id, "symbolizing", json_pack("{s:i}", "recoveries", 9));
	restart(stage);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Progress Finished CaptureRecovered forgotten");
	put_back(stage, id, "symbolizing", json_pack("{s:i}", "recoveries", 10));
	restart(stage);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Failed CaptureRecovered forgotten");
	assert_string_equal(stage_failure_code(), "interrupted");
	assert_non_null(strstr(stage_failure_message(), "10 times"));
}

static void a_journal_without_a_record_tells_what_was_asked_for(void **state)
{
	struct capture_stage *stage = *state;
	char path[512];
	stage->options.asked = json_pack("{s:[s]}", "formats", "folded");
	play_and_put_back(stage, "ok", "sampling");
	json_decref(stage->options.asked);
	stage->options.asked = NULL;
	own_path(stage, oldest_id(stage), "record.json", path);
	assert_int_equal(unlink(path), 0);
	restart(stage);
	stage_run_to_the_end(stage);
	const json_t *finished = stage_event_params("SamplingProfileFinished");
	assert_string_equal(stage_member(finished, "label"), "ok");
	assert_int_equal(stage_number(finished, "build_id"), 7);
	assert_int_equal(stage_number(finished, "pid"), getpid());
	assert_string_equal(stage_member(finished, "reason"), "recovered");
	assert_string_equal(stage_read_file(stage_member(finished, "folded_path")), "this is folded\n");
	assert_true(json_is_null(json_object_get(finished, "svg_path")));
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	const json_t *kept = store_get(stage->store, stage_member(finished, "capture_id"));
	assert_int_equal(stage_number(kept, "hz"), 1000);
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(kept, "argv"), 0)), "prog");
}

static void several_are_recovered_one_after_another(void **state)
{
	struct capture_stage *stage = *state;
	for (int i = 0; i < 4; i++) {
		play_and_put_back(stage, "ok", "sampling");
	}
	restart(stage);
	assert_int_equal(captures_running(stage->captures), 4);
	/* They are no reason to refuse others; deleting or discarding them works at once. */
	struct error err = {0};
	struct capture *second = captures_next(stage->captures, captures_next(stage->captures, NULL));
	assert_false(captures_delete(stage->captures, capture_id(second), NULL, NULL, &err));
	assert_int_equal(err.code, ERROR_CAPTURE_BUSY);
	assert_true(capture_update(second, "renamed", 1, &err));
	capture_stop(second, "stopped", true);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(),
		"Progress Finished CaptureRecovered forgotten Failed forgotten "
		"Progress Finished CaptureRecovered forgotten Progress Finished CaptureRecovered "
		"forgotten");
	assert_string_equal(stage_failure_code(), "cancelled");
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_int_equal(store_count(stage->store), 3);
	assert_int_equal(stage_count_captures(stage), 3);
}

static void those_that_wait_when_the_daemon_ends_are_left_to_the_next(void **state)
{
	struct capture_stage *stage = *state;
	for (int i = 0; i < 3; i++) {
		play_and_put_back(stage, "ok", "sampling");
	}
	restart(stage);
	struct capture *capture = NULL;
	while ((capture = captures_next(stage->captures, capture)) != NULL) {
		capture_stop(capture, "daemon_shutdown", false);
	}
	assert_int_equal(captures_running(stage->captures), 1);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Progress Finished CaptureRecovered forgotten");
	restart(stage);
	assert_int_equal(captures_running(stage->captures), 2);
	stage_run_to_the_end(stage);
	assert_string_equal(stage_event_names(), "Progress Finished CaptureRecovered forgotten "
											 "Progress Finished CaptureRecovered forgotten");
}

static void a_hostile_record_does_no_harm(void **state)
{
	struct capture_stage *stage = *state;
	char id[32];
	static const char *const extras[] = {
		"{\"pid\":-1,\"argv\":7,\"cwd\":[],\"label\":{},\"build_id\":[1],\"options\":[],\"folder\":"
		"7}",
		"{\"pid\":4294967297,\"warnings\":[7,{},{\"code\":1,\"message\":\"x\"}],\"hz\":-5,"
		"\"signal\":\"SIGNOTHING\",\"exit_code\":1e9,\"sampler\":\"x\",\"recoveries\":\"many\"}",
		"{\"started_unix_us\":9007199254740991,\"options\":{\"formats\":[7,\"nothing\"],"
		"\"duration_ms\":-1,\"kernel\":7},\"signal\":\"SIGTERM\",\"recoveries\":-5}",
		"{\"folder\":\"/etc\",\"build_id\":null,\"pinned\":\"yes\"}",
	};
	stage_play(stage, "ok", 20);
	snprintf(id, sizeof(id), "%s", oldest_id(stage));
	for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
		put_back(stage, id, "sampling", json_loads(extras[i], 0, NULL));
		restart(stage);
		stage_run_to_the_end(stage);
		const json_t *finished = stage_event_params("SamplingProfileFinished");
		assert_int_equal(stage_number(finished, "samples"), 20);
		uv_run(&stage->loop, UV_RUN_DEFAULT);
	}
}

int main(int argc, char **argv)
{
	stage_begin(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_set_up, stage_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_unfinished_capture_is_finished_from_its_journal),
		TEST(a_capture_without_samples_is_failed_as_interrupted),
		TEST(an_analyzer_that_crashes_twice_fails_it_and_keeps_the_journal),
		TEST(one_that_never_ended_is_not_tried_for_ever),
		TEST(a_journal_without_a_record_tells_what_was_asked_for),
		TEST(several_are_recovered_one_after_another),
		TEST(those_that_wait_when_the_daemon_ends_are_left_to_the_next),
		TEST(a_hostile_record_does_no_harm),
	};
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
