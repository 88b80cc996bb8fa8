#include <stdio.h>
#include <string.h>

#include "commands/beginning.h"
#include "commands/build.h"
#include "commands/gpu_trace.h"
#include "commands/methods.h"
#include "commands/params.h"
#include "gpu/gpu.h"
#include "protocol/limits.h"
#include "protocol/names.h"

#define PROGRESS_MIN_MS 50
#define PROGRESS_MAX_MS 60000

_Static_assert(LIMIT_GPU_WAIT_DEFAULT == 60000 && LIMIT_PROGRESS_MS_DEFAULT == 250,
	"the table below tells the defaults as text");

static const char *const kinds[] = {"document", NULL};
static const char *const later_kinds[] = {"timeline", NULL};

static const struct param params_table[] = {
	{.name = "build_id",
		.type = PARAM_ID,
		.required = true,
		.about = "The build, launched with gpu."},
	{.name = "request_key",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Within 10 minutes a repeated request with it returns the first result."},
	{.name = "start_frame",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_INTEGER,
		.about = "The first frame to record, counted from 0 since the program made its device."},
	{.name = "end_frame",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_INTEGER,
		.about = "The last one, included; left out: start_frame."},
	{.name = "frames",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_INTEGER,
		.about = "So many, from the next one on."},
	{.name = "duration_ms",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_DURATION_MS,
		.about = "From the next submit or present so long."},
	{.name = "frame_by",
		.type = PARAM_STRING,
		.min = 1,
		.max = GPU_LABEL_BYTES + 16,
		.fallback = "\"auto\"",
		.about = "What a frame is: auto, present, submit, label:PREFIX; or manual, until stopped."},
	{.name = "kind",
		.type = PARAM_ENUM,
		.choices = kinds,
		.later = later_kinds,
		.fallback = "\"document\"",
		.about = "A document holds the GPU's data and shaders, to be inspected and stepped."},
	{.name = "device",
		.type = PARAM_STRING,
		.min = 1,
		.max = GPU_PICK_WISH_BYTES - 1,
		.about = "Which of the program's GPUs, by name, index or uuid; left out: each."},
	BEGINNING_OUTPUT_DIR,
	{.name = "verify",
		.type = PARAM_BOOLEAN,
		.fallback = "true",
		.about = "Have RenderDoc's own reader (renderdoccmd) read the whole document when it is "
				 "written."},
	{.name = "timeout_ms",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_GPU_WAIT_MS,
		.fallback = "60000",
		.about = "How long to wait for the first frame."},
	BEGINNING_LABEL,
	{.name = "progress_ms",
		.type = PARAM_INTEGER,
		.min = PROGRESS_MIN_MS,
		.max = PROGRESS_MAX_MS,
		.fallback = "250",
		.about = "The least time between GpuTraceProgress events."},
	BEGINNING_SUBSCRIBE,
	BEGINNING_ON_CLIENT_EXIT,
	{.name = NULL},
};

static bool has(const json_t *params, const char *name)
{
	return json_object_get(params, name) != NULL;
}

static bool bad(struct error *err, const char *text)
{
	return error_set(err, ERROR_BAD_PARAMS, "%s", text);
}

static bool read_boundary(const json_t *params, struct gpu_range *range, struct error *err)
{
	if (gpu_boundary_parse(command_string(params, "frame_by", "auto"), &range->by, range->label)) {
		return true;
	}
	params_refuse(err, "frame_by", json_object_get(params, "frame_by"),
		"auto, present, submit, manual, or label: with a prefix of 1 to 127 bytes");
	return error_detail(err, "out_of_range");
}

/* Frames by number, so many frames, a time, or none of it: until it is stopped. */
static bool read_range(const json_t *params, struct gpu_range *range, struct error *err)
{
	snprintf(range->device, sizeof(range->device), "%s", command_string(params, "device", ""));
	range->has_frames = has(params, "start_frame");
	range->first = (uint64_t)command_integer(params, "start_frame", 0);
	range->last = (uint64_t)command_integer(params, "end_frame", (int64_t)range->first);
	range->next = (uint64_t)command_integer(params, "frames", 0);
	if (has(params, "end_frame") && !range->has_frames) {
		return bad(err, "end_frame needs start_frame");
	}
	if (range->has_frames + has(params, "frames") + has(params, "duration_ms") > 1) {
		return bad(err, "StartGpuTrace takes one of start_frame, frames and duration_ms, not more");
	}
	if (range->last < range->first) {
		char text[128];
		snprintf(text, sizeof(text), "end_frame is %llu, before start_frame %llu",
			(unsigned long long)range->last, (unsigned long long)range->first);
		bad(err, text);
		return error_detail(err, "out_of_range");
	}
	if (!read_boundary(params, range, err)) {
		return false;
	}
	if (range->by == GPU_BY_MANUAL && (range->has_frames || range->next > 0)) {
		bad(err, "with frame_by manual no frames are counted");
		return error_hint(err, "give duration_ms, or neither and stop it with StopCapture");
	}
	return true;
}

/* The build's program; NULL: err. */
static struct gpu_program *find_program(
	const struct daemon *daemon, const struct process *process, struct error *err)
{
	struct gpu_program *program = build_gpu(daemon, process);
	if (program == NULL && process_state(process) == PROCESS_EXITED) {
		error_set(err, ERROR_BUILD_NOT_RUNNING, "the build %s has ended", process_key(process));
	} else if (program == NULL) {
		error_set(err, ERROR_GPU_NOT_ARMED,
			"the build %s was not launched with gpu, and no running program can be armed",
			process_key(process));
	}
	return program;
}

struct capture *gpu_trace_start(struct daemon *daemon, const json_t *params,
	struct process *process, struct client *client, struct error *err)
{
	struct capture_trace_options options = {
		.process = process,
		.program = find_program(daemon, process, err),
		.duration_ms = (uint64_t)command_integer(params, "duration_ms", 0),
		.timeout_ms = (uint64_t)command_integer(params, "timeout_ms", LIMIT_GPU_WAIT_DEFAULT),
		.progress_ms = (uint64_t)command_integer(params, "progress_ms", LIMIT_PROGRESS_MS_DEFAULT),
		.verify = command_boolean(params, "verify", true),
		.output_dir = command_string(params, "output_dir", NULL),
		.label = command_string(params, "label", NULL),
		.asked = (json_t *)params,
	};
	struct capture *capture = NULL;
	if (options.program != NULL && read_range(params, &options.range, err)) {
		capture = captures_trace(daemon->captures, &options, err);
	}
	return beginning_tie(daemon, params, capture, process, client, err);
}

static void start_gpu_trace(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct client *client = request_client(request);
	struct process *process = build_find(daemon, request, params);
	if (process == NULL) {
		return;
	}
	struct capture *capture = gpu_trace_start(daemon, params, process, client, &err);
	beginning_answer(daemon, request, params, capture, &err);
}

static const char *const events[] = {EVENT_GPU_TRACE_STARTED, EVENT_GPU_TRACE_PROGRESS,
	EVENT_GPU_TRACE_FINISHED, EVENT_GPU_TRACE_FAILED, NULL};
static const char *const errors[] = {"build_not_found", "build_not_running", "gpu_not_armed",
	"gpu_no_calls", "gpu_frame_not_reached", "capture_busy", "not_permitted", "unsupported",
	"backend_unavailable", "limit_exceeded", "disk_full", "io", "shutting_down", NULL};

const struct command start_gpu_trace_command = {
	.name = "StartGpuTrace",
	.params = params_table,
	.run = start_gpu_trace,
	.about = "Records frames of a build's GPU work; answers once the program is asked.",
	.result = "capture_id, state, backend, trace_kind, frame_by, start_frame, end_frame, frames, "
			  "duration_ms, timeout_ms, device, warnings",
	.events = events,
	.errors = errors,
};
