#ifndef TESTS_SUPPORT_CAPTURE_STAGE_H
#define TESTS_SUPPORT_CAPTURE_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <uv.h>

#include "capture/capture.h"
#include "process/process.h"
#include "sampler/sampler.h"
#include "store/store.h"

/*
 * A stage for captures: files, journal, pipeline and the child process are real (the child is the test program
 * itself in the role of the analyzer, which does what the capture's label says); the process, the sampler and the events are
 * fakes that a test drives.
 */

struct process {
	enum process_state state;
	json_t *build_id;
	pid_t pid;
	struct process_exit exit;
	struct process_watch *watches;
};

struct sampler {
	struct sampler_sink sink;
	pid_t pid;
	uint64_t cpu_time_ns;
	uint64_t next_stack;
	bool is_gated, runs, refuses;
};

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

extern struct sampler stage_sampler;
/* What was published: an array of {name, params}. */
extern json_t *stage_events;

/* First thing in main: plays the analyzer when this is the child, and does not return then. */
void stage_begin(int argc, char **argv);

/* cmocka's. The end of each test checks that it left nothing: no handle, descriptor, child or half-written file. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* Another program as the analyzer, from here on. */
void stage_create_captures(struct capture_stage *stage, const char *analyzer);
/* A capture with the stage's options, and a waiter that fills in told. */
struct capture *stage_start(struct capture_stage *stage);
/* Tells the watchers that it runs or has exited. */
void stage_process_becomes(struct process *process, enum process_state state);
/* Samples, each with a stack of its own, of so many frames. */
void stage_emit(size_t count, size_t frames);
/* Runs the loop until no capture is left. */
void stage_run_to_the_end(struct capture_stage *stage);
void stage_run_until_event(struct capture_stage *stage, const char *name);
/* A held program that runs, is sampled so often, and exits with 3; to its end. */
void stage_play(struct capture_stage *stage, const char *label, size_t samples);

/* The names of the events in order, a run of the same name once, without "SamplingProfile". */
const char *stage_event_names(void);
/* Of the latest event of that name. */
const json_t *stage_event_params(const char *name);
const char *stage_error_code(const json_t *params);
const char *stage_error_message(const json_t *params);
/* "" when it is no string. */
const char *stage_member(const json_t *object, const char *name);
json_int_t stage_number(const json_t *object, const char *name);

size_t stage_count_entries(const char *path);
/* Valid until the next call. */
char *stage_read_file(const char *path);
/* Of the oldest capture. */
const char *stage_folder_of(struct capture_stage *stage);
/* What is left is the journal and the record. */
void stage_assert_only_the_journal_is_kept(struct capture_stage *stage);

#endif
