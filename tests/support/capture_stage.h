#ifndef TESTS_SUPPORT_CAPTURE_STAGE_H
#define TESTS_SUPPORT_CAPTURE_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <uv.h>

#include "capture/capture.h"
#include "store/store.h"
#include "support/capture_fakes.h"

/*
 * A stage for captures: files, journal, pipeline and the child process are real (the child is the test program
 * itself in the role of the analyzer, fake_analyzer.h); the process, the sampler and the events are fakes that a test drives
 * (capture_fakes.h).
 */

struct capture_stage {
	char path[64], data[96], self[256];
	uv_loop_t loop;
	struct log log;
	struct store *store;
	struct captures *captures;
	struct process process;
	struct capture_options options;
	size_t descriptors;
	json_t *told; /* what a waiter was told; json null: nothing yet */
	struct capture_wait wait;
	bool was_told;
};

/* First thing in main: plays the analyzer when this is the child, and does not return then. */
void stage_begin(int argc, char **argv);

/* cmocka's. The end of each test checks that it left nothing: no handle, descriptor, child or half-written file. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* Another program as the analyzer, from here on. */
void stage_create_captures(struct capture_stage *stage, const char *analyzer);
/* A capture with the stage's options, and a waiter that fills in told. */
struct capture *stage_start(struct capture_stage *stage);
/* The same with this label, and the program runs. */
struct capture *stage_start_running(struct capture_stage *stage, const char *label);
/* A capture with the stage's options must be refused with this code; says why. */
struct error stage_refuse(struct capture_stage *stage, enum error_code code);
/* Runs the loop until no capture is left. */
void stage_run_to_the_end(struct capture_stage *stage);
void stage_run_until_event(struct capture_stage *stage, const char *name);
/* A held program that runs, is sampled so often, and exits with 3; to its end. */
void stage_play(struct capture_stage *stage, const char *label, size_t samples);

/* How many captures have a folder. */
size_t stage_count_captures(const struct capture_stage *stage);
/* Valid until the next call. */
char *stage_read_file(const char *path);
/* Of the oldest capture. */
const char *stage_folder_of(struct capture_stage *stage);
/* What is left is the journal and the record. */
void stage_assert_only_the_journal_is_kept(struct capture_stage *stage);

#endif
