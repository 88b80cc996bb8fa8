#ifndef CAPTURE_TRACING_H
#define CAPTURE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/document.h"
#include "capture/recording.h"
#include "capture/trace_failure.h"
#include "capture/trace_shaders.h"
#include "gpu/gpu.h"

/*
 * A GPU trace, for this folder alone: trace_starting.c has its beginning (captures_trace), tracing.c its life and its end, trace_watching.c its build, trace_taking.c its document;
 * trace_recovery.c finishes what another daemon had begun.
 */
struct trace_recovery {
	uint64_t began_ns, seen_bytes; /* of what is temporary, when it was last looked at; */
	unsigned quiet_looks;          /* and so often it was as before */
	bool is_named;                 /* the document had its final name already */
};

struct tracing {
	const struct gpu_backend *backend;
	struct gpu_program *program; /* a hold; NULL: it is a recovery */
	bool is_listening;
	struct gpu_range range; /* path_template is owned */
	uint64_t duration_ms, timeout_ms;
	struct trace_ending ending; /* what is known for it so far */
	bool is_asked_to_stop, has_exited;
	bool is_gone; /* the process that was recorded: its last state is known */
	uint64_t exited_ns;
	struct {
		int64_t frame;
		uint64_t bytes;
		const char *state;
	} told;                        /* by the last progress */
	struct trace_shaders *shaders; /* owned */
	/* The worker's. */
	struct trace_shaders_counts shader_counts;
	char *document_path;      /* owned; NULL */
	struct document document; /* once it is good */
	uint64_t first_frame, last_frame;
	bool is_last_open;     /* its last frame has no end */
	bool is_cut_by_window; /* its swapchain went before its last frame */
	bool is_document_good, is_machine_good;
	struct error error;
	struct trace_recovery recovery;
	/* Afterwards. */
	bool is_vouched;             /* whoever wrote it said that it is whole */
	bool is_verified;            /* it is to be, */
	const char *haste;           /* but for this reason not any more; NULL */
	struct verifying *verifying; /* NULL: not now */
};

/* What the program tells; the context is the capture. */
extern const struct gpu_listener tracing_listener;

/* So long an ended program's children may still say something. */
#define TRACING_EXIT_MS 1000

/* The capture's, empty; a start and a recovery fill it. False: memory is out. */
bool tracing_create(struct capture *capture, const struct gpu_backend *backend);
/* There is no document, and none will come: it ends with that reason, and the cause is looked for. */
void tracing_conclude(struct capture *capture, const char *reason);
/* Timers of the capture's: progress, and the end of the time. */
void tracing_tell(uv_timer_t *timer);
void tracing_time_over(uv_timer_t *timer);
/* What is known of the program now goes into what may be said of it, and into the record. */
void tracing_take_status(struct capture *capture);
/* The capture's handles are opened; the build's events and the time drive it from now on. */
void tracing_watch(struct capture *capture, struct process *process);

#endif
