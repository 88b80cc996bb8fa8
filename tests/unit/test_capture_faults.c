#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "support/capture_stage.h"
#include "support/descriptors.h"
#include "support/faults.h"

/*
 * Every call of the system that a capture makes from its beginning to its deletion fails once, and once for good from there on. Whatever happens, it is told: a
 * capture that was refused, has failed or has finished, and a record that names nothing that is not there.
 */

static const int errors[] = {ENOSPC, EIO, EMFILE, ENOMEM, EDQUOT, EROFS};
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

struct part {
	const char *name;
	/* What is done without faults before, and with them. */
	void (*prepare)(struct capture_stage *stage);
	void (*run)(struct capture_stage *stage);
};

static void begin_anew(struct capture_stage *stage)
{
	json_array_clear(stage_events);
	json_decref(stage->told);
	stage->told = NULL;
	stage->was_told = false;
	stage->process.state = PROCESS_HELD;
	stage->process.exit = (struct process_exit){.exit_code = 3};
	stage->options.label = "ok";
}

/* From the wish to the artifacts. */
static void record(struct capture_stage *stage)
{
	struct error err = {0};
	struct capture *capture = captures_start(stage->captures, &stage->options, &err);
	if (capture == NULL) {
		assert_true(err.code != ERROR_NONE && err.message[0] != '\0');
		assert_int_equal(captures_running(stage->captures), 0);
		uv_run(&stage->loop, UV_RUN_DEFAULT);
		return;
	}
	stage_process_becomes(&stage->process, PROCESS_RUNNING);
	stage_emit(200, 10);
	stage_process_becomes(&stage->process, PROCESS_EXITED);
	stage_run_to_the_end(stage);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_string_equal(stage_member(json_array_get(stage_events, 0), "name"),
		strstr(stage_event_names(), "Started") != NULL ? "SamplingProfileStarted"
													   : "SamplingProfileFailed");
	assert_non_null(strstr(stage_event_names(), "F"));
}

static void nothing(struct capture_stage *stage)
{
	(void)stage;
}

/* One that has ended. */
static void have_one(struct capture_stage *stage)
{
	record(stage);
	assert_int_equal(store_count(stage->store), 1);
}

static void restart(struct capture_stage *stage, bool must_open)
{
	struct error err = {0};
	captures_destroy(stage->captures);
	stage->captures = NULL;
	store_close(stage->store);
	stage->store = store_open(stage->data, &err);
	if (must_open) {
		assert_string_equal(err.message, "");
		assert_non_null(stage->store);
	} else if (stage->store == NULL) {
		assert_true(err.code != ERROR_NONE && err.message[0] != '\0');
		return;
	}
	stage_create_captures(stage, stage->self);
	captures_recover(stage->captures);
	stage_run_to_the_end(stage);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
}

/* One that another daemon left. */
static void have_an_unfinished_one(struct capture_stage *stage)
{
	char path[4200];
	have_one(stage);
	json_t *kept = json_deep_copy(store_next(stage->store, ""));
	json_object_set_new(kept, "state", json_string("sampling"));
	snprintf(path, sizeof(path), "%s/captures/%s/record.json", stage->data,
		stage_member(kept, "capture_id"));
	assert_int_equal(json_dump_file(kept, path, 0), 0);
	json_decref(kept);
	json_array_clear(stage_events);
}

static void recover(struct capture_stage *stage)
{
	restart(stage, false);
}

static void deleted(void *context, const char *left, const struct error *err)
{
	*(bool *)context = true;
	assert_null(left);
	assert_true(err == NULL || err->message[0] != '\0');
}

static void update_and_delete(struct capture_stage *stage)
{
	struct error err = {0};
	char id[32];
	bool was_told = false;
	snprintf(id, sizeof(id), "%s", stage_member(store_next(stage->store, ""), "capture_id"));
	if (!store_update(stage->store, id, "new", 1, &err)) {
		assert_true(err.message[0] != '\0');
		assert_string_equal(stage_member(store_get(stage->store, id), "label"), "ok");
	}
	if (captures_delete(stage->captures, id, deleted, &was_told, &err)) {
		uv_run(&stage->loop, UV_RUN_DEFAULT);
		assert_true(was_told);
	} else {
		assert_true(err.message[0] != '\0');
	}
}

/* Was told of an end: 1 with a record, 2 with a reason why there is none. */
static void symbolized(void *context, const json_t *kept, const struct error *err)
{
	*(int *)context = err == NULL ? 1 : 2;
	assert_true(kept != NULL || (err != NULL && err->message[0] != '\0'));
	if (kept != NULL) {
		assert_string_equal(stage_member(kept, "state"), "finished");
	}
}

static void symbolize(struct capture_stage *stage)
{
	struct error err = {0};
	char id[32];
	int told = 0;
	json_array_clear(stage_events);
	json_t *before = store_next(stage->store, "");
	snprintf(id, sizeof(id), "%s", stage_member(before, "capture_id"));
	json_incref(before);
	bool begun = captures_symbolize(stage->captures, id, symbolized, &told, &err);
	assert_true(begun || err.message[0] != '\0');
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_int_equal(begun, told != 0);
	assert_false(captures_is_symbolizing(stage->captures, id));
	assert_int_equal(json_array_size(stage_events), 0);
	if (told != 1) {
		assert_true(json_equal(store_get(stage->store, id), before));
	}
	json_decref(before);
}

static void discard(struct capture_stage *stage)
{
	struct error err = {0};
	struct capture *capture = captures_start(stage->captures, &stage->options, &err);
	if (capture != NULL) {
		stage_process_becomes(&stage->process, PROCESS_RUNNING);
		stage_emit(200, 10);
		capture_stop(capture, "stopped", true);
		stage_run_to_the_end(stage);
		assert_string_equal(stage_failure_code(), "cancelled");
	}
	uv_run(&stage->loop, UV_RUN_DEFAULT);
}

/* What a record says of itself is there, byte for byte. */
static void check_record(const json_t *kept)
{
	static const char *const paths[] = {"folded_path", "svg_path", "metadata_path"};
	const char *state = stage_member(kept, "state");
	size_t i, artifacts = json_array_size(json_object_get(kept, "artifacts"));
	json_t *artifact;
	struct stat status;
	bool finished = strcmp(state, "finished") == 0;
	assert_true(finished || strcmp(state, "failed") == 0);
	assert_int_equal(artifacts, finished ? 4 : 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(finished, json_is_string(json_object_get(kept, paths[i])));
	}
	json_array_foreach(json_object_get(kept, "artifacts"), i, artifact)
	{
		assert_int_equal(stat(stage_member(artifact, "path"), &status), 0);
		assert_int_equal(status.st_size, stage_number(artifact, "bytes"));
	}
	const json_t *error = json_object_get(kept, "error");
	assert_int_equal(finished, error == NULL);
	assert_true(finished || stage_member(error, "message")[0] != '\0');
}

static void check_all(struct capture_stage *stage)
{
	char after[32] = "";
	json_t *kept = NULL;
	while (stage->store != NULL && (kept = store_next(stage->store, after)) != NULL) {
		check_record(kept);
		snprintf(after, sizeof(after), "%s", stage_member(kept, "capture_id"));
	}
}

/* The next daemon, on a disk that works: all is ended, and all can be deleted. */
static void check_next_daemon(struct capture_stage *stage)
{
	struct error err = {0};
	const json_t *kept = NULL;
	restart(stage, true);
	check_all(stage);
	while ((kept = store_next(stage->store, "")) != NULL) {
		bool was_told = false;
		assert_true(captures_delete(
			stage->captures, stage_member(kept, "capture_id"), deleted, &was_told, &err));
		uv_run(&stage->loop, UV_RUN_DEFAULT);
		assert_true(was_told);
	}
	assert_int_equal(stage_count_captures(stage), 0);
}

/* False: there was no call of that number any more. */
static bool fail_one(struct capture_stage *stage, const struct part *part, unsigned at, int error,
	enum fault_mode mode)
{
	const char *failed = "";
	begin_anew(stage);
	part->prepare(stage);
	size_t descriptors = descriptors_open();
	faults_begin(at, error, mode);
	part->run(stage);
	unsigned calls = faults_end(&failed);
	if (getenv("PROFD_SHOW_FAULTS") != NULL) {
		fprintf(stderr, "# %s: call %u (%s) failed with %s%s, of %u\n", part->name, at, failed,
			strerror(error), mode == FAULT_ONCE ? "" : " and all after it", calls);
	}
	if (stage->store != NULL && stage->captures != NULL) {
		assert_int_equal(descriptors_open(), descriptors);
		check_all(stage);
	}
	check_next_daemon(stage);
	return failed[0] != '\0';
}

static void fail_each(struct capture_stage *stage, const struct part *part)
{
	bool all = getenv("PROFD_LONG") != NULL;
	for (int mode = FAULT_ONCE; mode <= FAULT_FROM_THEN_ON; mode++) {
		bool went_on = true;
		unsigned step = all || mode == FAULT_ONCE ? 1 : 3;
		for (unsigned at = 1; went_on; at += step) {
			assert_true(at < 1000);
			for (size_t i = 0; i < (all ? ERRORS : 1) && went_on; i++) {
				/* The short run has each call fail once, with one of the errors in turn, and each third for good. */
				int error = errors[(at + i + 3 * (size_t)mode) % ERRORS];
				went_on = fail_one(stage, part, at, error, (enum fault_mode)mode);
			}
		}
	}
}

static void a_recording_survives_each_failing_call(void **state)
{
	static const struct part part = {"record", nothing, record};
	fail_each(*state, &part);
}

static void a_recovery_survives_each_failing_call(void **state)
{
	static const struct part part = {"recover", have_an_unfinished_one, recover};
	fail_each(*state, &part);
}

static void naming_again_survives_each_failing_call(void **state)
{
	static const struct part part = {"symbolize", have_one, symbolize};
	fail_each(*state, &part);
}

static void a_change_and_a_deletion_survive_each_failing_call(void **state)
{
	static const struct part part = {"delete", have_one, update_and_delete};
	fail_each(*state, &part);
}

static void discarding_survives_each_failing_call(void **state)
{
	static const struct part part = {"discard", nothing, discard};
	fail_each(*state, &part);
}

static int set_up_elsewhere(void **state)
{
	int result = stage_set_up(state);
	struct capture_stage *stage = *state;
	stage->options.output_dir = stage->path;
	return result;
}

int main(int argc, char **argv)
{
	stage_begin(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, stage_set_up, stage_tear_down)
#define ELSEWHERE(name)                                                                            \
	{                                                                                              \
#name " elsewhere", name, set_up_elsewhere, stage_tear_down, NULL                          \
	}
	const struct CMUnitTest tests[] = {
		TEST(a_recording_survives_each_failing_call),
		TEST(a_recovery_survives_each_failing_call),
		TEST(naming_again_survives_each_failing_call),
		TEST(a_change_and_a_deletion_survive_each_failing_call),
		TEST(discarding_survives_each_failing_call),
		ELSEWHERE(a_recording_survives_each_failing_call),
		ELSEWHERE(a_change_and_a_deletion_survive_each_failing_call),
	};
	return cmocka_run_group_tests_name("capture_faults", tests, NULL, NULL);
}
