#include "client/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/base64.h"
#include "protocol/limits.h"
#include "protocol/names.h"

/* --- options --- */

enum gpu_option {
	GPU_OPTION_START = PROFCTL_OWN,
	GPU_OPTION_END,
	GPU_OPTION_FRAMES,
	GPU_OPTION_BY,
	GPU_OPTION_DEVICE,
	GPU_OPTION_TIMEOUT,
	GPU_OPTION_SETTINGS,
	GPU_OPTION_API,
	GPU_OPTION_NO_VERIFY,
};

static bool set_integer(struct gpu *gpu, const char *member, json_int_t value)
{
	return json_object_set_new(gpu->params, member, json_integer(value)) == 0;
}

static bool set_seconds(struct gpu *gpu, const char *member, const char *option, const char *text)
{
	json_int_t milliseconds = 0;
	return profctl_seconds(option, text, false, &milliseconds) &&
		   set_integer(gpu, member, milliseconds);
}

static bool set_timeout(struct gpu *gpu, const char *text)
{
	if (!set_seconds(gpu, "timeout_ms", "--timeout", text)) {
		return false;
	}
	if (json_integer_value(json_object_get(gpu->params, "timeout_ms")) > LIMIT_GPU_WAIT_MS) {
		fprintf(stderr, "profctl: --timeout %s: the first frame is waited for %d seconds at most\n",
			text, LIMIT_GPU_WAIT_MS / 1000);
		return false;
	}
	return true;
}

static bool set_frames(struct gpu *gpu, const char *text)
{
	json_int_t count = 0;
	return profctl_whole("--frames", text, 1, LIMIT_INTEGER, &count) &&
		   set_integer(gpu, "frames", count);
}

static bool take_option(void *context, int option, const char *value)
{
	struct gpu *gpu = context;
	switch (option) {
	case GPU_OPTION_START:
		return gpu_settings_option(&gpu->settings, GPU_START, value);
	case GPU_OPTION_END:
		return gpu_settings_option(&gpu->settings, GPU_END, value);
	case 'o':
		return gpu_settings_option(&gpu->settings, GPU_OUTPUT_DIR, value);
	case GPU_OPTION_DEVICE:
		return gpu_settings_option(&gpu->settings, GPU_DEVICE, value);
	case GPU_OPTION_FRAMES:
		return set_frames(gpu, value);
	case 'd':
		return set_seconds(gpu, "duration_ms", "--duration", value);
	case GPU_OPTION_TIMEOUT:
		return set_timeout(gpu, value);
	case GPU_OPTION_BY:
		return profctl_set_text(gpu->params, "frame_by", "the value of --frame-by", value);
	case 'l':
		return profctl_set_text(gpu->params, "label", "the label", value);
	case 'q':
		gpu->quiet = true;
		return true;
	case GPU_OPTION_API:
		gpu->api = value;
		return profctl_text("the value of --api", value);
	case GPU_OPTION_NO_VERIFY:
		return json_object_set_new(gpu->params, "verify", json_false()) == 0;
	case GPU_OPTION_SETTINGS:
		gpu->settings_file = value;
		return true;
	default:
		return false; /* told */
	}
}

static const struct option gpu_options[] = {
	{"gpu-trace-start-frame", required_argument, NULL, GPU_OPTION_START},
	{"gpu-trace-end-frame", required_argument, NULL, GPU_OPTION_END},
	{"gpu-trace-output-directory", required_argument, NULL, 'o'},
	{"frames", required_argument, NULL, GPU_OPTION_FRAMES},
	{"duration", required_argument, NULL, 'd'},
	{"frame-by", required_argument, NULL, GPU_OPTION_BY},
	{"api", required_argument, NULL, GPU_OPTION_API},
	{"device", required_argument, NULL, GPU_OPTION_DEVICE},
	{"timeout", required_argument, NULL, GPU_OPTION_TIMEOUT},
	{"no-verify", no_argument, NULL, GPU_OPTION_NO_VERIFY},
	{"settings", required_argument, NULL, GPU_OPTION_SETTINGS},
	{"label", required_argument, NULL, 'l'}, {"quiet", no_argument, NULL, 'q'}, PROFCTL_OPTIONS};

static bool take_settings(struct gpu *gpu)
{
	bool has_frames = json_object_get(gpu->params, "frames") != NULL;
	bool has_duration = json_object_get(gpu->params, "duration_ms") != NULL;
	if (has_frames && has_duration) {
		fputs("profctl: --frames does not go with --duration: one is needed\n", stderr);
		return false;
	}
	return gpu_settings_environment(&gpu->settings) &&
		   (gpu->settings_file == NULL || gpu_settings_file(&gpu->settings, gpu->settings_file)) &&
		   gpu_settings_check(&gpu->settings, has_frames || has_duration);
}

/* --- arming --- */

/* What the daemon wants in the environment, with the bytes of a value that is not UTF-8 beside it (chapter 3 of the protocol). */
static bool set_variable(struct gpu *gpu, const char *name, const json_t *value, struct error *err)
{
	char member[128], *bytes = NULL;
	size_t len = 0;
	snprintf(member, sizeof(member), "%s_b64", name);
	const json_t *encoded = json_object_get(gpu->environment, member);
	if (!json_is_string(encoded)) {
		return gate_set(&gpu->recording.gate, name, json_string_value(value), err);
	}
	bytes = calloc(1, json_string_length(encoded) + 1);
	bool ok = bytes != NULL &&
			  base64_decode(json_string_value(encoded), json_string_length(encoded), bytes, &len);
	if (ok) {
		bytes[len] = '\0';
		ok = gate_set(&gpu->recording.gate, name, bytes, err);
	} else {
		error_set(err, ERROR_INTERNAL, "profd sent no bytes for the variable %s", name);
	}
	free(bytes);
	return ok;
}

static bool is_encoded(const char *name)
{
	size_t len = strlen(name);
	return len > 4 && strcmp(name + len - 4, "_b64") == 0;
}

static bool set_environment(struct gpu *gpu, struct error *err)
{
	const char *name;
	json_t *value;
	json_object_foreach(gpu->environment, name, value)
	{
		if (json_is_string(value) && !is_encoded(name) && !set_variable(gpu, name, value, err)) {
			return false;
		}
	}
	return json_is_object(gpu->environment) ||
		   error_set(err, ERROR_INTERNAL, "profd did not say how the program is armed");
}

/* The program waits behind its gate; the daemon makes it a build, and says what must be in its environment. */
static bool arm(struct gpu *gpu, struct error *err)
{
	json_t *options = json_object(), *device = gpu->settings.values[GPU_DEVICE];
	/* Programs of GL cannot be made to see one GPU alone; the trace can be of it. */
	if (device != NULL && (gpu->api == NULL || strcmp(gpu->api, "gl") != 0)) {
		json_object_set(options, "device", device);
	}
	if (gpu->api != NULL) {
		json_object_set_new(options, "api", json_string(gpu->api));
	}
	json_t *reply = profctl_try(gpu->recording.client, "AdoptProcess",
		json_pack("{s:i, s:o}", "pid", (int)gpu->recording.gate.pid, "gpu", options), err);
	if (reply == NULL) {
		return false;
	}
	json_object_set(gpu->params, "build_id", json_object_get(reply, "build_id"));
	gpu->environment = json_incref(json_object_get(reply, "environment"));
	json_decref(reply);
	return set_environment(gpu, err);
}

static bool start_trace(struct gpu *gpu, struct error *err)
{
	static const char *const members[GPU_SETTINGS] = {[GPU_START] = "start_frame",
		[GPU_END] = "end_frame",
		[GPU_OUTPUT_DIR] = "output_dir",
		[GPU_DEVICE] = "device"};
	for (size_t i = 0; i < GPU_SETTINGS; i++) {
		if (members[i] != NULL && gpu->settings.values[i] != NULL) {
			json_object_set(gpu->params, members[i], gpu->settings.values[i]);
		}
	}
	/* Nobody else would ever end it. */
	if (gpu->until_stopped) {
		json_object_set_new(gpu->params, "on_client_exit", json_string("stop"));
	}
	json_t *reply =
		profctl_try(gpu->recording.client, "StartGpuTrace", json_incref(gpu->params), err);
	return recording_take_reply(&gpu->recording, reply, err);
}

/* --- the program --- */

static void look(void *context)
{
	struct gpu *gpu = context;
	gpu_take_interrupts(gpu);
	if (!gpu->is_told && !recording_is_open(&gpu->recording)) {
		gpu->is_told = true;
		gpu_report(gpu);
		gpu->recording.shows_progress = false;
	}
	gpu_end_held(gpu);
	if (gpu->is_told && !gpu->is_end_told && gpu->recording.job.is_reaped) {
		gpu->is_end_told = true;
		gpu_report_signal(gpu);
	}
}

/* The program's, unless that would hide that there is no trace. */
static int exit_status(const struct gpu *gpu)
{
	const struct recording *recording = &gpu->recording;
	int status = job_shell_status(&recording->job);
	bool has_trace = recording->final != NULL &&
					 strcmp(profclient_event_name(recording->final), recording->finished) == 0;
	return status == EXIT_SUCCESS && !has_trace ? EXIT_CAPTURE_FAILED : status;
}

static int run_traced(struct gpu *gpu)
{
	struct error err = {0};
	struct recording *recording = &gpu->recording;
	if (!recording_start_gate(recording, gpu->argv, &err) || !arm(gpu, &err) ||
		!start_trace(gpu, &err) || !recording_go(recording, &err)) {
		return recording_not_run(recording, &err);
	}
	recording_follow_program(recording);
	recording_follow_capture(recording);
	look(gpu);
	return exit_status(gpu);
}

/* As if it had been started without profctl. */
static int run_untraced(struct gpu *gpu)
{
	if (!gpu->quiet) {
		fprintf(stderr, "profctl: no GPU trace: %s is false\n", gpu->settings.names[GPU_ENABLE]);
	}
	execvp(gpu->argv[0], gpu->argv);
	int problem = errno;
	fputs("profctl: ", stderr);
	reply_print(stderr, gpu->argv[0], 0);
	fprintf(stderr, ": %s\n", strerror(problem));
	return problem == ENOENT ? GATE_EXIT_NOT_FOUND : GATE_EXIT_CANNOT_RUN;
}

/* --- the command --- */

static void prepare(struct gpu *gpu)
{
	struct recording *recording = &gpu->recording;
	recording->progress = EVENT_GPU_TRACE_PROGRESS;
	recording->finished = EVENT_GPU_TRACE_FINISHED;
	recording->failed = EVENT_GPU_TRACE_FAILED;
	recording->what = "GPU trace";
	recording->show_progress = gpu_show_progress;
	recording->look = look;
	recording->context = gpu;
	gpu->until_stopped = gpu->settings.values[GPU_START] == NULL &&
						 json_object_get(gpu->params, "frames") == NULL &&
						 json_object_get(gpu->params, "duration_ms") == NULL;
	/* Then Ctrl-C ends the trace: the program, whom the terminal sends it too, must not die of it. */
	recording->ignores_interrupts = gpu->until_stopped;
}

static int connect_and_run(struct gpu *gpu, const struct profctl *profctl)
{
	prepare(gpu);
	return recording_connect(&gpu->recording, profctl, gpu->quiet) ? run_traced(gpu)
																   : GATE_EXIT_NO_GO;
}

static int run(struct profctl *profctl, int argc, char **argv)
{
	struct gpu gpu = {.params = json_object(), .recording = RECORDING_NONE};
	int status = GATE_EXIT_NO_GO;
	if (profctl_program(profctl, &gpu_command, argc, argv, take_option, &gpu, &gpu.argv, &status) &&
		take_settings(&gpu)) {
		gpu.json = profctl->json;
		status = gpu_settings_is_enabled(&gpu.settings) ? connect_and_run(&gpu, profctl)
														: run_untraced(&gpu);
	}
	recording_finish(&gpu.recording);
	gpu_settings_finish(&gpu.settings);
	json_decref(gpu.environment);
	json_decref(gpu.params);
	return status;
}

const struct profctl_command gpu_command = {
	.name = "gpu",
	.synopsis =
		"[--gpu-trace-start-frame N [--gpu-trace-end-frame N] | --frames N | -d SECONDS] "
		"[-o FOLDER] [--frame-by WHAT] [--api API] [--device GPU] [--timeout SECONDS] "
		"[--no-verify] [--settings FILE] [--label TEXT] [--quiet] [--] PROGRAM [ARGUMENT …]",
	.about = "run a program in this terminal and record its GPU frames",
	.help = "      --gpu-trace-start-frame N  the first frame, from 0 on\n"
			"      --gpu-trace-end-frame N    the last one, included; by default the first\n"
			"      --frames N                 so many, from the first on\n"
			"  -d, --duration SECONDS         so long, from the first frame on\n"
			"                                 (none of these: until Ctrl-C)\n"
			"  -o, --gpu-trace-output-directory FOLDER\n"
			"                                 where the capture's folder is made\n"
			"      --frame-by WHAT            what a frame is: auto, present, submit,\n"
			"                                 label:PREFIX, manual\n"
			"      --api API                  what the program uses: vulkan (the default), gl\n"
			"      --device GPU               its name, index or uuid\n"
			"      --timeout SECONDS          how long the first frame is waited for; 60\n"
			"      --no-verify                do not have the document read when it is there\n"
			"      --settings FILE            JSON with enable_gpu_tracing, gpu_trace_…\n"
			"  -l, --label TEXT               kept with the capture\n"
			"  -q, --quiet                    print nothing unless something went wrong\n",
	.short_options = "+d:o:l:q",
	.options = gpu_options,
	.run = run,
};
