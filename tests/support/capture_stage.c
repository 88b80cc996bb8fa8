#include "support/capture_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "support/descriptors.h"
#include "support/fake_analyzer.h"
#include "support/entries.h"

size_t stage_count_captures(const struct capture_stage *stage)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/captures", stage->data);
	return entries_count(path);
}

void stage_create_captures(struct capture_stage *stage, const char *analyzer)
{
	struct error err = {0};
	struct captures_options options = {
		.loop = &stage->loop, .log = &stage->log, .store = stage->store, .analyzer_path = analyzer};
	captures_destroy(stage->captures);
	stage->captures = captures_create(&options, &err);
	assert_non_null(stage->captures);
}

int stage_set_up(void **state)
{
	struct capture_stage *stage = calloc(1, sizeof(*stage));
	struct error err = {0};
	stage->descriptors = descriptors_open();
	assert_int_equal(uv_loop_init(&stage->loop), 0);
	snprintf(stage->path, sizeof(stage->path), "/tmp/test-capture-XXXXXX");
	assert_non_null(mkdtemp(stage->path));
	snprintf(stage->data, sizeof(stage->data), "%s/data", stage->path);
	assert_true(readlink("/proc/self/exe", stage->self, sizeof(stage->self) - 1) > 0);
	stage->log = (struct log){LOG_ERROR, 2};
	stage->store = store_open(stage->data, &err);
	assert_non_null(stage->store);
	stage_create_captures(stage, stage->self);
	stage->process =
		(struct process){.state = PROCESS_HELD, .build_id = json_integer(7), .pid = getpid()};
	stage->options = (struct capture_options){.process = &stage->process,
		.hz = 1000,
		.progress_ms = 50,
		.sampler = "auto",
		.unwind = "fp",
		.write_folded = true,
		.write_svg = true,
		.write_json = true};
	stage_events = json_array();
	stage_sampler = (struct sampler){.cpu_time_ns = 5000000};
	*state = stage;
	return 0;
}

/* Every test ends as if nothing had happened: no handle, no descriptor, no child, and no half-written file. */
int stage_tear_down(void **state)
{
	struct capture_stage *stage = *state;
	char command[256];
	assert_int_equal(captures_running(stage->captures), 0);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&stage->loop), 0);
	captures_destroy(stage->captures);
	store_close(stage->store);
	json_decref(stage->process.build_id);
	json_decref(stage->told);
	json_decref(stage_events);
	assert_null(stage->process.watches);
	assert_false(stage_sampler.runs);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(descriptors_open(), stage->descriptors);
	snprintf(command, sizeof(command), "test -z \"$(find %s -name '*.tmp')\" && rm -rf %s",
		stage->path, stage->path);
	assert_int_equal(system(command), 0);
	free(stage);
	return 0;
}

static void ended(struct capture_wait *wait, const json_t *record)
{
	struct capture_stage *stage = wait->context;
	stage->was_told = true;
	stage->told = record != NULL ? json_deep_copy(record) : NULL;
	/* The terminal event is out by now. */
	assert_non_null(strstr(stage_event_names(),
		record != NULL && json_object_get(record, "error") == NULL ? "Finished" : "Failed"));
}

struct capture *stage_start(struct capture_stage *stage)
{
	struct error err = {0};
	struct capture *capture = captures_start(stage->captures, &stage->options, &err);
	assert_string_equal(err.message, "");
	assert_non_null(capture);
	stage->wait = (struct capture_wait){.ended = ended, .context = stage};
	capture_wait(capture, &stage->wait);
	return capture;
}

struct capture *stage_start_running(struct capture_stage *stage, const char *label)
{
	stage->options.label = label;
	struct capture *capture = stage_start(stage);
	stage_process_becomes(&stage->process, PROCESS_RUNNING);
	return capture;
}

struct error stage_refuse(struct capture_stage *stage, enum error_code code)
{
	struct error err = {0};
	assert_null(captures_start(stage->captures, &stage->options, &err));
	assert_int_equal(err.code, code);
	return err;
}

void stage_run_to_the_end(struct capture_stage *stage)
{
	uint64_t limit = clock_monotonic_ns() + UINT64_C(30000000000);
	while (captures_running(stage->captures) > 0) {
		assert_true(clock_monotonic_ns() < limit);
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
}

void stage_run_until_event(struct capture_stage *stage, const char *name)
{
	uint64_t limit = clock_monotonic_ns() + UINT64_C(10000000000);
	while (strstr(stage_event_names(), name) == NULL) {
		assert_true(clock_monotonic_ns() < limit);
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
}

void stage_play(struct capture_stage *stage, const char *label, size_t samples)
{
	stage_start_running(stage, label);
	stage_emit(samples, 10);
	stage->process.exit = (struct process_exit){.exit_code = 3};
	stage_process_becomes(&stage->process, PROCESS_EXITED);
	stage_run_to_the_end(stage);
}

char *stage_read_file(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

const char *stage_folder_of(struct capture_stage *stage)
{
	return stage_member(store_next(stage->store, ""), "folder");
}

void stage_assert_only_the_journal_is_kept(struct capture_stage *stage)
{
	char path[4200];
	snprintf(path, sizeof(path), "%s/capture.journal", stage_folder_of(stage));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(entries_count(stage_folder_of(stage)), 2);
}

void stage_begin(int argc, char **argv)
{
	uv_loop_t loop;
	if (argc == 1 && strcmp(argv[0], "profd-analyzer") == 0) {
		fake_analyzer_run();
	}
	/* What libuv opens once for good is not to be counted. */
	uv_loop_init(&loop);
	uv_loop_close(&loop);
}
