#ifndef CAPTURE_RECORDING_H
#define CAPTURE_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "capture/analyzer.h"
#include "capture/artifacts.h"
#include "capture/capture.h"
#include "capture/pipeline.h"
#include "capture/record.h"
#include "process/pidfd.h"
#include "profile/journal_writer.h"
#include "sampler/sampler.h"

/*
 * The inside of a capture, for this folder alone: starting.c has its beginning, capture.c its life, ending.c its end; tracing.h has GPU traces;
 * recovery.c (of GPU traces trace_recovery.h) begins again what another daemon had begun, deleting.c and retention.c let go of what has ended, symbolizing.c names it again.
 */
#define CAPTURE_ANALYZER_STALL_MS 60000 /* so long an analyzer may be silent */

enum capture_phase {
	CAPTURE_ARMED,
	CAPTURE_SAMPLING, /* or GPU work is being recorded */
	CAPTURE_WAITING,  /* for its recovery */
	CAPTURE_STOPPING, /* a worker stops the sampler and completes the journal, or reads what another daemon left */
	CAPTURE_ANALYZING,
	CAPTURE_COMMITTING, /* a worker syncs and renames the artifacts */
	CAPTURE_DELETING,   /* a worker deletes everything, as was asked for */
	CAPTURE_ENDED,
};

struct captures {
	struct captures_options options;
	char *analyzer_path;   /* owned */
	struct capture *first; /* those that have not ended, oldest first */
	size_t count;
	size_t recovering; /* of those, the recoveries; and of these, those that wait */
	size_t waiting;
	bool is_ending;                   /* no further recovery begins */
	struct deletion *deletions;       /* deleting.c: in their order, the first has begun */
	struct symbolizing *symbolizings; /* symbolizing.c */
	bool is_symbolizing_over;
	struct codes *codes; /* owned */
	size_t works; /* on workers, and captures with handles: they look at this when they are done */
	uv_work_t giving; /* memory back */
	bool is_giving;
	bool is_closed; /* destroyed but for those */
};

struct capture {
	struct captures *captures;
	struct capture *next;
	enum capture_phase phase;
	struct store_folder folder; /* owned */
	struct record record;
	char *build_key; /* owned; NULL for a bare pid */
	uint64_t progress_ms;

	/* Sampling. */
	struct process_watch watch; /* of a build */
	struct pidfd_watch exit;    /* of a bare pid */
	bool has_exit_watch;
	struct journal_writer *writer; /* owned until the worker has stopped sampling */
	struct pipeline *pipeline;     /* owned */
	const struct sampler_ops *ops;
	struct sampler *sampler; /* owned until the worker has stopped it */
	uint64_t started_ns, ended_ns, next_progress_ns, armed_ns;
	bool is_announced; /* SamplingProfileStarted was published */
	bool is_dated;     /* started_ns is the kernel's time of the program's beginning */
	uv_timer_t tick, duration, defer;
	int handles; /* of the timers and the exit watch, those that are open; and the worker at the end */

	/* The end. */
	bool discard;               /* everything is deleted */
	bool silent;                /* and nobody is told */
	struct error failure;       /* code NONE: none; otherwise how it will end */
	struct error journal_error; /* the worker's */
	uint64_t cpu_time_ns;
	uv_work_t work;
	struct analyzer *analyzer;   /* NULL: none runs */
	struct error analyzer_error; /* of one that failed before it was needed */
	struct artifacts artifacts;
	int journal_fd, kernel_symbols_fd; /* owned; -1 */
	bool symbols;                      /* the analyzer may look into images */
	json_t *facts;                     /* owned; NULL */
	bool was_moved;                    /* its folder is not where it was made any more */
	bool commit_ok;
	struct error commit_error;
	struct capture_wait *waits;
	struct tracing *tracing;   /* owned; NULL: it samples, or is a recovery that waits */
	struct recovery *recovery; /* owned; NULL: it was begun by this daemon */
	uint64_t bytes;            /* the worker's: of its files, after the end */
};

/* Ends the sampling; what follows comes by itself. Nothing when it is ending already. */
void ending_begin(struct capture *capture, const char *reason);
/* Makes a capture that is ending throw everything away; its end comes in a later turn. */
void ending_discard(struct capture *capture);

/* The journal is complete, the artifacts are created: names and outputs are made from it, and the capture ends. */
void ending_analyze(struct capture *capture);
/* Ends it as finished; its files are under their final names. */
void ending_finish(struct capture *capture);
/* Ends it as failed, with whatever was kept. */
void ending_fail(struct capture *capture, const struct error *err);
/* Deletes everything and ends it as cancelled. Its worker must be free. */
void ending_cancel(struct capture *capture);

/* tracing.c: of a GPU trace, what ending_begin is for samples; and its memory. */
void tracing_stop(struct capture *capture, const char *reason);
void tracing_destroy(struct tracing *tracing);
/* Before an exit that waits for nothing. */
void tracing_abandon(const struct tracing *tracing);

/* starting.c: what every capture of this daemon begins with. */
/* False: as many as there may be are running. */
bool starting_check_room(const struct captures *captures, struct error *err);
/* NULL: err. Without a folder, in no table. */
struct capture *starting_create(struct captures *captures, struct process *process, pid_t pid,
	const char *label, const json_t *asked, struct error *err);
bool starting_make_folder(struct capture *capture, const char *output_dir, struct error *err);
bool starting_put_record(struct capture *capture, struct error *err);
/* Undoes what was begun of a capture that is in no table. */
void starting_undo(struct capture *capture);
bool starting_check_process(const struct process *process, struct error *err);

/* recovery.c */
void recovery_destroy(struct recovery *recovery);
/* The warning of one that is finished: up to when it was gathered, and whether that was its end. */
void recovery_warn(struct capture *capture, uint64_t until_us, bool has_end);
/* Ends it as interrupted; why goes on behind "and". */
void recovery_interrupt(struct capture *capture, const char *why);
const struct pipeline_image *recovery_images(const struct recovery *recovery, size_t *count);
bool recovery_has_same_kernel(const struct recovery *recovery);
/* Begins the oldest that waits, unless one is at work or the daemon ends. */
void recovery_next(struct captures *captures);

/* deleting.c: goes on with what the last daemon was deleting; and puts an end to those that have not begun. */
void deleting_resume(struct captures *captures);
void deleting_finish(struct captures *captures);
/* retention.c: deletes what is more than may be kept; never spared (NULL: none). */
void retention_apply(struct captures *captures, const char *spared);

/* symbolizing.c: kills its analyzers. */
void symbolizing_abandon(const struct captures *captures);

/* In the background; whoever has freed much asks for it. */
void captures_give_memory_back(struct captures *captures);

/* One more, or one less, work that looks at captures when it is done. */
void captures_hold(struct captures *captures);
void captures_release(struct captures *captures);
/* The last of the table. */
void captures_add(struct captures *captures, struct capture *capture);
/* Its timers. */
void capture_init_handles(struct capture *capture);

/* The program's first instruction: time counts from here, or from when it was by the kernel's clock, once that is known. */
void capture_begin_sampling(struct capture *capture);
void capture_date_back(struct capture *capture);

/* Events. */
void capture_announce(struct capture *capture);
void capture_publish(
	struct capture *capture, const char *event, enum events_class class, json_t *params);
void capture_publish_progress(struct capture *capture, int permille);
void capture_take_counters(struct capture *capture);
/* Keeps the record as it is now; a failure is logged. */
void capture_keep(struct capture *capture);
/* After the terminal event: out of the table, its waiters told, its handles closed, then freed. */
void capture_dispose(struct capture *capture, const json_t *record);
/* Closes the handles, and frees the capture when the last has closed. */
void capture_close_handles(struct capture *capture);
void capture_exit_closed(struct pidfd_watch *watch);
/* Frees a capture without handles. */
void capture_release(struct capture *capture);

#endif
