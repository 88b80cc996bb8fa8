#include "commands/sampling.h"

#include <string.h>

#include "commands/adoption.h"
#include "commands/beginning.h"
#include "commands/build.h"
#include "commands/methods.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/svg_options.h"

#define HZ_DEFAULT      "999"
#define PROGRESS_MIN_MS 50
#define PROGRESS_MAX_MS 60000
#define MAX_BYTES_LEAST (64 * 1024)

_Static_assert(LIMIT_HZ_DEFAULT == 999 && LIMIT_PROGRESS_MS_DEFAULT == 250,
	"the table below tells the defaults as text");

static const char *const modes[] = {"cpu", NULL};
static const char *const later_modes[] = {"wall", "offcpu", NULL};
static const char *const scopes[] = {"process", NULL};
static const char *const later_scopes[] = {"tree", NULL};
static const char *const unwinders[] = {"auto", "fp", "dwarf", NULL};
static const char *const samplers[] = {"auto", "perf", NULL};
static const char *const later_samplers[] = {"tick", "ptrace", "mach", NULL};
static const char *const formats[] = {"folded", "svg", "json", NULL};

static const struct param svg_params[] = {
	{.name = SVG_OPTION_TITLE,
		.type = PARAM_STRING,
		.max = SVG_OPTION_TITLE_BYTES,
		.about = "What stands above it; left out: the label, or the program's name."},
	{.name = SVG_OPTION_WIDTH,
		.type = PARAM_INTEGER,
		.min = SVG_OPTION_WIDTH_LEAST,
		.max = SVG_OPTION_WIDTH_MOST,
		.about = "Its width in pixels; left out: that of the window."},
	{.name = SVG_OPTION_MIN_SHARE,
		.type = PARAM_INTEGER,
		.min = 0,
		.max = SVG_OPTION_MIN_SHARE_PPM,
		.fallback = "0",
		.about = "Frames below this share of all samples, in millionths, are summed up."},
	{.name = SVG_OPTION_ORDER,
		.type = PARAM_ENUM,
		.choices = svg_option_orders,
		.fallback = "\"name\"",
		.about = "What orders the frames beside each other; weight: the heaviest first."},
	{.name = SVG_OPTION_LAYOUT,
		.type = PARAM_ENUM,
		.choices = svg_option_layouts,
		.fallback = "\"icicle\"",
		.about = "Where the root is; icicle: at the top, flame: at the bottom."},
	{.name = SVG_OPTION_COLORS,
		.type = PARAM_ENUM,
		.choices = svg_option_colors,
		.fallback = "\"kind\"",
		.about = "What colours follow: the kind of code, the file that it is in, or the name."},
	{.name = SVG_OPTION_THREADS,
		.type = PARAM_ENUM,
		.choices = svg_option_threads,
		.fallback = "\"separate\"",
		.about = "Whether each thread has a tree of its own, or all share one."},
	{.name = NULL},
};

const struct param sampling_params[] = {
	{.name = "build_id", .type = PARAM_ID, .about = "The build to sample; this or pid."},
	{.name = "pid",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = INT32_MAX,
		.about = "A process that waits behind profd-gate; this or build_id."},
	{.name = "request_key",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Within 10 minutes a repeated request with it returns the first result."},
	{.name = "duration_ms",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_DURATION_MS,
		.about =
			"How long to sample from the program's first instruction; left out: until stopped."},
	{.name = "hz",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_INTEGER,
		.fallback = HZ_DEFAULT,
		.about = "Samples per second of CPU time; above the kernel's maximum: hz_too_high."},
	{.name = "mode",
		.type = PARAM_ENUM,
		.choices = modes,
		.later = later_modes,
		.fallback = "\"cpu\"",
		.about = "What is sampled: threads on a CPU."},
	{.name = "scope",
		.type = PARAM_ENUM,
		.choices = scopes,
		.later = later_scopes,
		.fallback = "\"process\"",
		.about = "This process; a child that it forks is another."},
	{.name = "unwind",
		.type = PARAM_ENUM,
		.choices = unwinders,
		.fallback = "\"auto\"",
		.about =
			"How stacks are walked: by frame pointers, by call-frame information, or by both."},
	{.name = "kernel",
		.type = PARAM_BOOLEAN,
		.fallback = "false",
		.about = "Show the kernel's frames where they may be seen."},
	{.name = "max_depth",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_MAX_DEPTH,
		.about = "Frames of a stack that are kept; left out: 1,024, with fp the kernel's limit, "
				 "which is never exceeded."},
	{.name = "max_bytes",
		.type = PARAM_INTEGER,
		.min = MAX_BYTES_LEAST,
		.max = LIMIT_INTEGER,
		.about = "The journal's size at which the capture ends with reason limit; left out: none."},
	{.name = "sampler",
		.type = PARAM_ENUM,
		.choices = samplers,
		.later = later_samplers,
		.fallback = "\"auto\"",
		.about = "What interrupts the program."},
	BEGINNING_OUTPUT_DIR,
	{.name = "formats",
		.type = PARAM_STRINGS,
		.min = 1,
		.max = 3,
		.choices = formats,
		.fallback = "[\"folded\",\"svg\",\"json\"]",
		.about = "The artifacts to write."},
	{.name = "svg",
		.type = PARAM_OBJECT,
		.members = svg_params,
		.about = "How the flame graph looks."},
	BEGINNING_LABEL,
	{.name = "progress_ms",
		.type = PARAM_INTEGER,
		.min = PROGRESS_MIN_MS,
		.max = PROGRESS_MAX_MS,
		.fallback = "250",
		.about = "The time between SamplingProfileProgress events."},
	BEGINNING_SUBSCRIBE,
	BEGINNING_ON_CLIENT_EXIT,
	{.name = "select",
		.type = PARAM_OBJECT,
		.is_unsupported = true,
		.about = "A descendant to wait for."},
	{.name = "threads",
		.type = PARAM_STRINGS,
		.is_unsupported = true,
		.about = "Names of the threads to sample."},
	{.name = "stitch",
		.type = PARAM_BOOLEAN,
		.fallback = "true",
		.about = "Complete stacks that were cut with the callers that their outermost frame has "
				 "always had; marked."},
	{.name = "symbol_path",
		.type = PARAM_STRINGS,
		.is_unsupported = true,
		.about = "Folders with symbols."},
	{.name = "debuginfod",
		.type = PARAM_BOOLEAN,
		.is_unsupported = true,
		.fallback = "false",
		.about = "Fetch symbols over the network."},
	{.name = "ring_ms",
		.type = PARAM_INTEGER,
		.is_unsupported = true,
		.about = "Keep only the last so many milliseconds."},
	{.name = "when",
		.type = PARAM_OBJECT,
		.is_unsupported = true,
		.about = "The condition on which a ring is kept."},
	{.name = NULL},
};

static bool has_format(const json_t *params, const char *format)
{
	const json_t *list = json_object_get(params, "formats");
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (strcmp(json_string_value(json_array_get(list, i)), format) == 0) {
			return true;
		}
	}
	return list == NULL;
}

static struct capture_options options_of(const json_t *params, struct process *process, pid_t pid)
{
	return (struct capture_options){
		.process = process,
		.pid = process == NULL ? pid : 0,
		.duration_ms = (uint64_t)command_integer(params, "duration_ms", 0),
		.hz = (uint64_t)command_integer(params, "hz", LIMIT_HZ_DEFAULT),
		.kernel = command_boolean(params, "kernel", false),
		.max_depth = (uint32_t)command_integer(params, "max_depth", 0),
		.max_bytes = (uint64_t)command_integer(params, "max_bytes", 0),
		.progress_ms = (uint64_t)command_integer(params, "progress_ms", LIMIT_PROGRESS_MS_DEFAULT),
		.sampler = command_string(params, "sampler", "auto"),
		.unwind = command_string(params, "unwind", "auto"),
		.stitch = command_boolean(params, "stitch", true),
		.output_dir = command_string(params, "output_dir", NULL),
		.label = command_string(params, "label", NULL),
		.write_folded = has_format(params, "folded"),
		.write_svg = has_format(params, "svg"),
		.write_json = has_format(params, "json"),
		.asked = (json_t *)params,
	};
}

struct capture *sampling_start(struct daemon *daemon, const json_t *params, struct process *process,
	pid_t pid, struct client *client, struct error *err)
{
	struct capture_options options = options_of(params, process, pid);
	struct capture *capture = captures_start(daemon->captures, &options, err);
	return beginning_tie(daemon, params, capture, process, client, err);
}

/* The process that the request names; *process stays NULL for a bare pid. */
static bool find_target(struct daemon *daemon, const json_t *params, struct process **process,
	pid_t *pid, struct error *err)
{
	const json_t *build_id = json_object_get(params, "build_id");
	*pid = (pid_t)command_integer(params, "pid", 0);
	if ((build_id != NULL) == (*pid != 0)) {
		return error_set(err, ERROR_BAD_PARAMS,
			"StartSamplingProfile needs build_id or pid, and was given %s",
			build_id != NULL ? "both" : "neither");
	}
	if (build_id == NULL) {
		*process = processes_find_pid(daemon->processes, *pid);
		return true;
	}
	*process = processes_find(daemon->processes, build_id, err);
	return *process != NULL;
}

/* One that waits behind its gate is as a held build; one that runs is as any process that profd did not launch. */
static void look_at_adopted(struct daemon *daemon, struct process **process, pid_t *pid)
{
	if (*process == NULL || !process_is_adopted(*process)) {
		return;
	}
	adoption_look(daemon, *process);
	if (process_state(*process) == PROCESS_RUNNING) {
		*pid = process_pid(*process);
		*process = NULL;
	}
}

static void start_sampling_profile(
	struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct process *process = NULL;
	pid_t pid = 0;
	struct client *client = request_client(request);
	if (!find_target(daemon, params, &process, &pid, &err)) {
		request_fail(request, &err);
		return;
	}
	look_at_adopted(daemon, &process, &pid);
	struct capture *capture = sampling_start(daemon, params, process, pid, client, &err);
	beginning_answer(daemon, request, params, capture, &err);
}

static const char *const events[] = {EVENT_SAMPLING_PROFILE_STARTED,
	EVENT_SAMPLING_PROFILE_PROGRESS, EVENT_SAMPLING_PROFILE_FINISHED, EVENT_SAMPLING_PROFILE_FAILED,
	NULL};
static const char *const errors[] = {"build_not_found", "build_not_running", "process_not_found",
	"capture_busy", "hz_too_high", "not_permitted", "unsupported", "backend_unavailable",
	"limit_exceeded", "disk_full", "io", "shutting_down", NULL};

const struct command start_sampling_profile_command = {
	.name = "StartSamplingProfile",
	.params = sampling_params,
	.run = start_sampling_profile,
	.about = "Samples a program's threads; answers once events are armed.",
	.result = "capture_id, state, sampler, unwinder, hz, warnings",
	.events = events,
	.errors = errors,
};
