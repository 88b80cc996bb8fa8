#ifndef TESTS_SUPPORT_CAPTURE_FAKES_H
#define TESTS_SUPPORT_CAPTURE_FAKES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "process/process.h"
#include "sampler/sampler.h"

/* In place of the process, the sampler and the events: fakes that a test drives, and asks what they were told. */

struct process {
	enum process_state state;
	json_t *build_id;
	pid_t pid;
	struct process_exit exit;
	const struct error *launch_error;
	struct process_watch *watches;
};

struct sampler {
	struct sampler_sink sink;
	pid_t pid;
	uint64_t cpu_time_ns;
	uint64_t next_stack;
	bool is_gated, runs, refuses;
};

extern struct sampler stage_sampler;
/* What was published: an array of {name, params}. */
extern json_t *stage_events;

/* Tells the watchers that it runs or has exited. */
void stage_process_becomes(struct process *process, enum process_state state);
/* Samples, each with a stack of its own, of so many frames. */
void stage_emit(size_t count, size_t frames);

/* The names of the events in order, a run of the same name once, without "SamplingProfile". */
const char *stage_event_names(void);
/* Of the latest event of that name. */
const json_t *stage_event_params(const char *name);
/* Of the error that the capture failed with. */
const char *stage_failure_code(void);
const char *stage_failure_message(void);
/* "" when it is no string. */
const char *stage_member(const json_t *object, const char *name);
json_int_t stage_number(const json_t *object, const char *name);

#endif
