#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <uv.h>

#include "base/log.h"
#include "gpu/gpu.h"
#include "process/process.h"
#include "protocol/error.h"
#include "server/events.h"
#include "store/store.h"

/*
 * One recording, from the wish to its artifacts:
 *
 *   armed ──first instruction──► sampling ──end──► symbolizing ──► writing ──► finished | failed
 *
 * It joins what are strangers to each other: a process, a sampler, the pipeline into the journal, the analyzer
 * and the store; and it publishes the capture's events. Ends by duration, stop, the target's exit, or a full disk; each capture publishes exactly
 * one terminal event. Loop thread only.
 */
struct captures;
struct capture;

/* What is kept of the captures that have ended and are not pinned; what is more is deleted, the oldest first. 0: no limit. */
struct captures_keep {
	uint64_t captures, bytes, days;
};

struct captures_options {
	uv_loop_t *loop;
	const struct log *log;
	struct events *events;
	struct store *store;
	struct processes *processes; /* NULL: nothing that it starts dies with it */
	const char *analyzer_path;
	struct captures_keep keep;
};

/* The wish. Strings borrowed for the call. */
struct capture_options {
	struct process *process; /* the build, or NULL and pid */
	pid_t pid;               /* a process that waits behind a gate */
	uint64_t duration_ms;    /* 0: until stopped */
	uint64_t hz;
	bool kernel;
	uint32_t max_depth; /* 0: the kernel's limit */
	uint64_t max_bytes; /* of the journal; 0: no limit */
	uint64_t progress_ms;
	const char *sampler;    /* "auto", "perf" */
	const char *unwind;     /* "auto", "dwarf", "fp" */
	bool stitch;            /* complete cut stacks where that is certain */
	const char *output_dir; /* NULL: the data folder */
	const char *label;      /* NULL */
	bool write_folded, write_svg, write_json;
	json_t *asked; /* the params as they came, for capture.json; borrowed */
};

struct captures *captures_create(const struct captures_options *options, struct error *err);
/* None may be running; recoveries that have not begun are left to the next start. Deletions that have begun still end, in later turns of the loop. NULL
 * is fine. */
void captures_destroy(struct captures *captures);
/* Before an exit that waits for nothing: no analyzer outlives it. The captures are left to the next start. */
void captures_abandon(struct captures *captures);

/*
 * Arms events on a held process, or begins on a running one; returns when they are armed. SamplingProfileStarted comes when
 * the program runs (from a later turn of the loop, so that the caller can reply and subscribe first).
 * Errors: capture_busy, limit_exceeded, build_not_running, process_not_found, unsupported (a pid that is not behind a gate), hz_too_high, not_permitted, …
 */
struct capture *captures_start(
	struct captures *captures, const struct capture_options *options, struct error *err);

/* The wish for a recording of GPU work. Strings borrowed for the call. */
struct capture_trace_options {
	struct process *process;     /* the build, held or running */
	struct gpu_program *program; /* it, armed; the capture holds it as long as it needs it */
	struct gpu_range
		range; /* without path_template. Neither frames nor next: until duration_ms is over, or until stopped */
	uint64_t duration_ms; /* from the first recorded frame; 0: none */
	uint64_t timeout_ms;  /* from the program's first instruction until the first recorded frame */
	uint64_t progress_ms;
	bool verify;            /* have the whole document read when it is there */
	const char *output_dir; /* NULL: the data folder */
	const char *label;      /* NULL */
	json_t *asked;          /* the params as they came, for the record; borrowed */
};

/*
 * Has the build's GPU work recorded: armed ──first frame──► sampling ──last frame, stop, exit──► writing ──► finished | failed. Its events are those
 * of GPU traces; GpuTraceStarted comes with the first frame that is recorded. What becomes of it is known only when its document was looked at.
 * Errors: capture_busy (detail gpu_busy), gpu_frame_not_reached (frame_passed), build_not_running, limit_exceeded, those of an output_dir.
 */
struct capture *captures_trace(
	struct captures *captures, const struct capture_trace_options *options, struct error *err);

/*
 * At the daemon's start: finishes what the last one left. Each unfinished capture of the store becomes a running one (captures_next) that is
 * "symbolizing" until its turn comes and it is analyzed: finished with reason recovered, or failed, and then CaptureRecovered. Deletions that were
 * begun are ended, and what is more than keep allows is deleted.
 */
void captures_recover(struct captures *captures);

/* done is called once, from a later turn of the loop: left is a folder that stayed because somebody else's files are in it, or NULL; err NULL: it is
 * gone. Both borrowed. */
typedef void (*capture_deleted_fn)(void *context, const char *left, const struct error *err);
/* Deletes one that has ended: nobody knows it from now on, its files go on a worker. False: capture_not_found, capture_busy (it runs). */
bool captures_delete(struct captures *captures, const char *capture_id, capture_deleted_fn done,
	void *context, struct error *err);

/* done is called once, from a later turn of the loop: the capture's new record, or err and it is as it was. Both borrowed. */
typedef void (*capture_symbolized_fn)(void *context, const json_t *record, const struct error *err);
/*
 * Makes the names of a capture that has ended again, from its journal, the files that are still the same, and what was known before; and its
 * artifacts from them. One that had failed, but whose journal has samples, is finished by it. No event tells of it.
 * False: capture_not_found, capture_busy (it runs, or is named already), limit_exceeded, shutting_down, io. Later: no_samples, disk_full, io, internal.
 */
bool captures_symbolize(struct captures *captures, const char *capture_id,
	capture_symbolized_fn done, void *context, struct error *err);
bool captures_is_symbolizing(const struct captures *captures, const char *capture_id);
/* Ends them all with shutting_down, and begins none any more. */
void captures_symbolize_stop(struct captures *captures);

/* One that has not ended; NULL. */
struct capture *captures_find(struct captures *captures, const char *capture_id);
struct capture *captures_next(struct captures *captures, struct capture *after);
/* Recoveries too, but not those that will not begin because the daemon ends. */
size_t captures_running(const struct captures *captures);

/* Ends the sampling with that reason ("stopped", "daemon_shutdown", "client_exited"). discard: everything is deleted, the terminal event is
 * …Failed with cancelled. Idempotent. The end comes later. */
void capture_stop(struct capture *capture, const char *reason, bool discard);

/* label NULL and pinned -1 leave what is there; an empty label is none. False: err is limit_exceeded, or
 * capture_not_found when it is being discarded; nothing has changed. */
bool capture_update(struct capture *capture, const char *label, int pinned, struct error *err);

/* An armed capture whose process never ran: undone without an event, as if it had not been asked for. */
void capture_cancel_armed(struct capture *capture);

/* Told once, after the terminal event was published: the final record (borrowed), or NULL for one discarded. Embedded in the waiter;
 * unwait before it goes. */
struct capture_wait {
	void (*ended)(struct capture_wait *wait, const json_t *record);
	void *context;
	struct capture *capture; /* NULL: not waiting */
	struct capture_wait *next;
};
void capture_wait(struct capture *capture, struct capture_wait *wait);
void capture_unwait(struct capture_wait *wait);

const char *capture_id(const struct capture *capture);
/* The reply of StartSamplingProfile: capture_id, state, sampler, unwinder, hz, warnings; or of StartGpuTrace. Owned. */
json_t *capture_effective(const struct capture *capture);
/* The record as it is now. Owned. */
json_t *capture_record(const struct capture *capture);

#endif
