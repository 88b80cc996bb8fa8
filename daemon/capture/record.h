#ifndef CAPTURE_RECORD_H
#define CAPTURE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "capture/artifacts.h"
#include "process/process.h"
#include "protocol/error.h"
#include "protocol/text.h"
#include "sampler/sampler.h"

/*
 * What is told about a capture: the parameters of its events, its record, and the facts for its analyzer. Plain
 * values and what is made of them; knows nothing of how they came about.
 */
struct record {
	const char *id, *folder; /* borrowed for the record's life */
	const char *state;       /* a constant, like reason */
	const char *reason;      /* NULL until it ends */
	json_t *build_id;        /* owned; NULL for a bare pid */
	pid_t pid;
	struct text_list argv;
	bool argv_truncated;
	char *cwd, *label; /* owned; NULL */
	bool is_pinned;
	json_t *options; /* what was asked, owned; NULL */
	struct sampler_effective effective;
	const char *unwinder;                    /* a constant: "fp" or "dwarf" */
	uint64_t duration_ms;                    /* asked for; 0: until stopped */
	uint64_t started_unix_us, ended_unix_us; /* 0: not yet */
	uint64_t elapsed_ms;                     /* from start to end, once it has ended */
	bool has_exit, was_signalled;
	int exit_code, signal;
	uint64_t user_us, system_us; /* of the program's whole life, with has_exit */
	uint64_t samples, lost, threads, stacks, truncated;
	json_t *warnings;                  /* array of {code, message, hint?}; owned */
	json_t *summary;                   /* owned; NULL */
	const struct artifacts *artifacts; /* borrowed */
	json_t *error;                     /* owned; NULL */
	json_t *trace; /* of a GPU trace (trace_record.h), owned; NULL: it samples */
};

/* label and options borrowed. False when memory is out. process may be NULL. */
bool record_init(struct record *record, const struct process *process, pid_t pid, const char *label,
	const json_t *options);
/* Of a capture that another daemon began: kept is its record, read from a file and thus of any content; what is wrong in it is left out. The state is
 * "symbolizing". False when memory is out. record_restore.c. */
bool record_restore(struct record *record, const json_t *kept);
/* The same of one that has ended, to be analyzed again: with its end, without what the last analysis said. */
bool record_restore_ended(struct record *record, const json_t *kept);
/* As much of a record as the journal's CAPTURE record (record_facts) knows, for record_restore. Owned. */
json_t *record_kept_of_facts(const json_t *facts);
void record_finish(struct record *record);

/* label NULL and pinned -1 leave what is there; an empty label is none. False when memory is out; nothing has changed then. */
bool record_update(struct record *record, const char *label, int pinned);

/* What a bare pid runs: its arguments, each with its NUL, and its current folder; borrowed. False when memory is out. */
bool record_set_target(struct record *record, const char *arguments, size_t len, const char *cwd);

void record_set_exit(struct record *record, const struct process *process);
/* hint may be NULL or "". At most LIMIT_EVENT_LIST are kept. */
void record_warn(struct record *record, const char *code, const char *message, const char *hint);
/* Takes over what the analyzer's "done" says, checked and bounded. False: it lacks what the contract wants. */
bool record_take_done(struct record *record, const json_t *body, struct error *err);

/* All owned by the caller. */
json_t *record_to_json(const struct record *record); /* GetCapture */
json_t *record_effective(
	const struct record *record); /* the reply of StartSamplingProfile, or StartGpuTrace */
json_t *record_facts(const struct record *record);   /* profile/analysis.h */
json_t *record_started(const struct record *record); /* the events' parameters */
json_t *record_finished(const struct record *record);
json_t *record_failed(const struct record *record);
/* permille below 0: null. */
json_t *record_progress(const struct record *record, uint64_t elapsed_ms, int permille);
/* Of a GPU trace: the frame that has begun last (below 0: none is known), and what is written so far. */
json_t *record_trace_progress(
	const struct record *record, uint64_t elapsed_ms, int64_t frame, uint64_t bytes);

#endif
