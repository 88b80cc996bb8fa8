#include "capture/trace_failure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHEN_BYTES 128

bool trace_failure_needs_probe(const struct trace_ending *ending)
{
	return !ending->has_begun && ending->stopped_by == NULL && ending->status.processes == 0 &&
		   ending->status.api == GPU_VULKAN;
}

bool trace_failure_needs_survivor(const struct trace_ending *ending)
{
	const struct gpu_status *status = &ending->status;
	return ending->has_exited && !ending->has_begun && ending->stopped_by == NULL &&
		   (status->processes == 0 || status->connected > 0);
}

/* "the program ended with status 0", or how long was waited. */
static void describe_when(const struct trace_ending *ending, char when[WHEN_BYTES])
{
	if (ending->has_exited) {
		snprintf(when, WHEN_BYTES, "the program %s", ending->how_it_ended);
	} else {
		snprintf(when, WHEN_BYTES, "within %" PRIu64 " ms", ending->waited_ms);
	}
}

static void no_calls(struct error *err, const char *detail, const char *hint)
{
	error_detail(err, detail);
	error_hint(err, "%s", hint);
}

static void explain_no_process(const struct trace_ending *ending, struct error *err)
{
	char when[WHEN_BYTES];
	bool is_gl = ending->status.api == GPU_GL;
	describe_when(ending, when);
	error_set(err, ERROR_GPU_NO_CALLS, "no process of the build used %s with profd's %s in it: %s",
		is_gl ? "OpenGL by EGL or GLX" : "Vulkan", is_gl ? "library" : "layer", when);
	no_calls(err, "layer_not_loaded",
		is_gl
			? "the program makes no context current (one that uses Vulkan is launched with gpu "
			  "{api: vulkan}), or is set-user-id, is linked statically, or runs in a sandbox that "
			  "hides its environment or profd's socket"
			: "the program makes no Vulkan call (one that uses OpenGL is launched with gpu {api: "
			  "gl}), or is set-user-id, has the Vulkan loader linked statically, or runs in a "
			  "sandbox that hides its environment or profd's socket");
}

static void explain_no_calls(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	char when[WHEN_BYTES];
	describe_when(ending, when);
	if (status->processes == 0) {
		explain_no_process(ending, err);
	} else if (status->devices == 0) {
		error_set(err, ERROR_GPU_NO_CALLS, "%s made a Vulkan instance but no device: %s",
			status->exe, when);
		no_calls(err, "no_device", "profctl doctor tells which devices there are");
	} else {
		error_set(err, ERROR_GPU_NO_CALLS,
			"%s gave its device %s no work beyond frame %" PRIu64 ": %s", status->exe,
			status->device.name, status->frame, when);
		no_calls(err, "gpu_idle",
			status->api == GPU_GL
				? "a program that swaps no buffers is recorded by frame_by: label:PREFIX, or manual"
				: "start the trace when the program works with the GPU");
	}
}

static void explain_other_device(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	char when[WHEN_BYTES];
	describe_when(ending, when);
	error_set(err, ERROR_GPU_NO_CALLS, "%s did not use a GPU %.80s, it used %s: %s", status->exe,
		ending->range->device, status->made, when);
	no_calls(err, "device_not_used",
		status->api == GPU_GL
			? "name one that it uses; which one that is chooses Mesa's variable DRI_PRIME"
			: "name one that it uses, or launch it with that device in gpu, so that it sees no "
			  "other");
}

static const char *frames_hint(const struct trace_ending *ending, bool has_no_label)
{
	const struct gpu_status *status = &ending->status;
	if (has_no_label) {
		return status->api == GPU_GL
				   ? "a label is the name of a debug group (KHR_debug)"
				   : "labels are those of VK_EXT_debug_utils in command buffers, or count by "
					 "frame_by: submit";
	}
	return strcmp(status->frame_by, "submit") == 0 || status->api == GPU_GL
			   ? "ask for earlier frames, or let the program run longer"
			   : "ask for earlier frames, let the program run longer, or count by frame_by: submit";
}

static void explain_frames(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	const struct gpu_range *range = ending->range;
	char when[WHEN_BYTES], wanted[64] = "the next frame";
	describe_when(ending, when);
	if (range->has_frames) {
		snprintf(wanted, sizeof(wanted), "frame %" PRIu64, range->first);
	}
	bool has_none = range->by == GPU_BY_LABEL && (!range->has_frames || range->first == 0);
	if (has_none) {
		error_set(err, ERROR_GPU_FRAME_NOT_REACHED,
			"%s was not reached: %s, and no label began with \"%s\"", wanted, when, range->label);
	} else {
		error_set(err, ERROR_GPU_FRAME_NOT_REACHED,
			"%s was not reached: %s, in frame %" PRIu64 " (by %s)", wanted, when, status->frame,
			status->frame_by[0] != '\0' ? status->frame_by : gpu_boundary_name(range->by));
	}
	error_detail(err, "frames_not_reached");
	error_hint(err, "%s", frames_hint(ending, has_none));
}

/* Whether it gave its device any work. Where frames are presents or labels, frame 0 may be full of it. */
static bool has_worked(const struct trace_ending *ending)
{
	const struct gpu_status *status = &ending->status;
	enum gpu_boundary by = ending->range->by;
	return by == GPU_BY_PRESENT || by == GPU_BY_LABEL ||
		   (status->has_frame && status->frame > (ending->had_frame ? ending->start_frame : 0));
}

bool trace_failure_is_waiting(
	const struct trace_ending *ending, enum error_code code, struct error *err)
{
	const struct gpu_waits *waits = &ending->status.waits;
	uint64_t since_ms =
		waits->since_ns < ending->ended_ns ? (ending->ended_ns - waits->since_ns) / 1000000 : 0;
	if (waits->text[0] == '\0') {
		return false;
	}
	error_set(err, code, "the recording could not %s for %" PRIu64 " ms%s%s: %s",
		waits->is_end ? "end" : "begin", since_ms, ending->has_exited ? ", until the program " : "",
		ending->has_exited ? ending->how_it_ended : "", waits->text);
	error_detail(err, "device_waits");
	error_hint(err, "%s", GPU_WAITS_HINT);
	return true;
}

static const char *stopper(const struct trace_ending *ending)
{
	if (strcmp(ending->stopped_by, "daemon_shutdown") == 0) {
		return "by the end of profd, ";
	}
	return strcmp(ending->stopped_by, "client_exited") == 0 ? "as its client had gone, " : "";
}

/* Nobody but who stopped it is the cause. */
static void explain_stop(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	const struct gpu_range *range = ending->range;
	char wanted[64] = "its first frame", is_at[sizeof(status->exe) + 96];
	if (range->has_frames) {
		snprintf(wanted, sizeof(wanted), "frame %" PRIu64, range->first);
	}
	if (status->processes == 0) {
		snprintf(is_at, sizeof(is_at), "no process of the build had used %s yet",
			status->api == GPU_GL ? "OpenGL by EGL or GLX" : "Vulkan");
	} else if (status->devices == 0) {
		snprintf(is_at, sizeof(is_at), "%s had made no device yet", status->exe);
	} else {
		snprintf(is_at, sizeof(is_at), "%s was in frame %" PRIu64 " (by %s)", status->exe,
			status->frame,
			status->frame_by[0] != '\0' ? status->frame_by : gpu_boundary_name(range->by));
	}
	const char *doctor =
		status->processes == 0 ? "; profctl doctor tells whether one can be recorded here" : "";
	error_set(err, ERROR_GPU_FRAME_NOT_REACHED,
		"the trace was stopped %safter %" PRIu64 " ms, before %s: %s", stopper(ending),
		ending->waited_ms, wanted, is_at);
	error_detail(err, "stopped");
	if (strcmp(ending->stopped_by, "daemon_shutdown") == 0) {
		error_hint(err, "start it again when profd runs");
	} else {
		error_hint(err, "stop it later, or start it when the program works with the GPU%s", doctor);
	}
}

/* What goes to the background leaves its build, which is its first process alone. */
static void explain_background(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	bool is_idle = status->devices == 0 || !has_worked(ending);
	char when[64] = "";
	if (!is_idle) {
		snprintf(when, sizeof(when), ", in frame %" PRIu64 " (by %.16s)", status->frame,
			status->frame_by);
	}
	error_set(err, is_idle ? ERROR_GPU_NO_CALLS : ERROR_GPU_FRAME_NOT_REACHED,
		"the build has ended before anything was recorded: its first process %s, and process %d "
		"(%s), which it left in the background%s, is not followed",
		ending->how_it_ended, (int)ending->survivor, ending->survivor_name, when);
	error_detail(err, "background");
	error_hint(err,
		"keep the program in the foreground: without &, --daemon or the like; a script ends with "
		"exec or wait");
}

void trace_failure_explain(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	if (trace_failure_is_waiting(
			ending, ending->has_begun ? ERROR_INTERRUPTED : ERROR_GPU_FRAME_NOT_REACHED, err)) {
		return;
	}
	if (trace_failure_is_late(ending, err)) {
		return;
	}
	if (ending->has_begun && !ending->has_exited && status->has_closed) {
		error_set(err, ERROR_INTERRUPTED,
			"the program closed the connection of profd's layer while it was being recorded from "
			"frame %" PRIu64 " on: its document is lost",
			ending->first_frame);
		error_detail(err, "connection_closed");
		error_hint(err,
			"let it close what it has opened alone (not all descriptors, by closefrom "
			"or close_range), or start the trace behind that: it can be recorded again");
	} else if (ending->has_begun) {
		/* Frames are told ten times a second at most: the last may be of before the recording. */
		uint64_t last = status->frame > ending->first_frame ? status->frame : ending->first_frame;
		error_set(err, ERROR_INTERRUPTED,
			"the program %s while it was being recorded, in frame %" PRIu64 " of a recording from "
			"frame %" PRIu64 " on: its document is lost",
			ending->has_exited ? ending->how_it_ended : "closed its connection", last,
			ending->first_frame);
		error_detail(err, "exited_mid_capture");
		error_hint(err, "%s",
			ending->has_exited && strncmp(ending->how_it_ended, "ended", 5) == 0
				? "let it end by exit or by returning from main (not by _exit), with the "
				  "descriptors open that it has not opened"
				: "let the program end by itself, or record fewer frames");
	} else if (ending->stopped_by != NULL) {
		explain_stop(ending, err);
	} else if (ending->survivor != 0) {
		explain_background(ending, err);
	} else if (ending->range->device[0] != '\0' && status->made[0] != '\0' && !status->has_wished) {
		explain_other_device(ending, err);
	} else if (status->devices == 0 || !has_worked(ending)) {
		explain_no_calls(ending, err);
	} else {
		explain_frames(ending, err);
	}
}

/* Numbers of frames that are counted in another way, or from another moment, say nothing. */
static bool is_comparable(const struct trace_ending *ending)
{
	const struct gpu_range *range = ending->range;
	return range->by == GPU_BY_AUTO ||
		   (range->by != GPU_BY_LABEL &&
			   strcmp(gpu_boundary_name(range->by), ending->status.frame_by) == 0);
}

bool trace_failure_is_late(const struct trace_ending *ending, struct error *err)
{
	const struct gpu_status *status = &ending->status;
	const struct gpu_range *range = ending->range;
	/* That it is in frame 0 a program says also before the frame has begun. */
	bool has_passed =
		status->frame > range->first || (status->frame == range->first && range->first > 0);
	/* The frames that are known are those of the device that began its frame last. */
	bool is_known = range->device[0] == '\0';
	if (!is_known || ending->has_begun || !range->has_frames || !status->has_frame ||
		status->devices == 0 || !is_comparable(ending) || !has_passed) {
		return false;
	}
	error_set(err, ERROR_GPU_FRAME_NOT_REACHED,
		"frame %" PRIu64 " has begun already: the program is in frame %" PRIu64 " (by %s)",
		range->first, status->frame,
		status->frame_by[0] != '\0' ? status->frame_by : gpu_boundary_name(range->by));
	error_detail(err, "frame_passed");
	error_hint(err, "ask for a later start_frame, or for the next frames with frames");
	return true;
}
