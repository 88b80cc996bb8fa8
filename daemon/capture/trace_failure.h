#ifndef CAPTURE_TRACE_FAILURE_H
#define CAPTURE_TRACE_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"
#include "protocol/error.h"

/* Why a GPU trace has no document, in the order of what is more likely the cause. Pure. */

struct trace_ending {
	const struct gpu_range *range;
	struct gpu_status status; /* as it was at the end */
	bool has_begun;           /* the document had begun, with this frame: */
	uint64_t first_frame;
	bool had_frame; /* the program's frame was known when the trace was started: */
	uint64_t start_frame;
	const char *
		stopped_by; /* before it began: "stopped", "client_exited", "daemon_shutdown"; NULL: it was not stopped */
	uint64_t waited_ms;    /* for the first frame */
	uint64_t ended_ns;     /* CLOCK_MONOTONIC */
	bool has_exited;       /* the build */
	char how_it_ended[64]; /* "was ended by SIGKILL", "ended with status 3"; with has_exited */
	pid_t survivor;        /* an armed process that lives on behind it; 0: none is known */
	char survivor_name[256];
};

/* No process ever made a Vulkan instance with our layer in it: only a probe can tell whether that is the machine's doing. */
bool trace_failure_needs_probe(const struct trace_ending *ending);
/* The program has said that the device keeps the recording from its beginning or end: err's code is its caller's, with that and since when (device_waits). False: it is not so. */
bool trace_failure_is_waiting(
	const struct trace_ending *ending, enum error_code code, struct error *err);
/* The build has ended before anything was recorded, and none of its processes that worked with the GPU has ended: who lives on behind it would be the reason. */
bool trace_failure_needs_survivor(const struct trace_ending *ending);
/* gpu_no_calls (background, layer_not_loaded, no_device, device_not_used, gpu_idle), gpu_frame_not_reached (background, stopped, frames_not_reached, device_waits), interrupted (exited_mid_capture, connection_closed). */
void trace_failure_explain(const struct trace_ending *ending, struct error *err);
/* The program is known to be behind the first frame already: gpu_frame_not_reached, frame_passed. False: that is not why. */
bool trace_failure_is_late(const struct trace_ending *ending, struct error *err);

#endif
