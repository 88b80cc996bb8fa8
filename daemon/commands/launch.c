#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "commands/arming.h"
#include "commands/build.h"
#include "commands/device_check.h"
#include "commands/methods.h"
#include "commands/params.h"
#include "commands/sampling.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/text.h"

/*
 * One LaunchProcess from its request to its reply. The watch is the first of its process, so that the reply
 * and the subscription come before any event of the build.
 */
struct launch {
	struct daemon *daemon;
	struct request *request;
	struct process_watch watch;
	json_t *profile; /* the checked parameters, or NULL */
	bool hold, subscribe, subscribe_capture;
	char capture_id[LIMIT_ID_BYTES]; /* "" without one */
	struct error refusal;            /* why the profile could not be started; then nothing runs */
};

/* What processes_launch wants; owns the arrays and the texts of env, of which the last is NULL. */
struct arguments {
	VEC(const char *) argv;
	VEC(char *) env;
};

static void arguments_finish(struct arguments *arguments)
{
	for (size_t i = 0; i < arguments->env.len; i++) {
		free(arguments->env.items[i]);
	}
	VEC_FINISH(&arguments->env);
	VEC_FINISH(&arguments->argv);
}

static bool out_of_memory(struct error *err)
{
	return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
}

static bool fill_argv(struct arguments *arguments, const json_t *list, struct error *err)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (!VEC_PUSH(&arguments->argv, json_string_value(json_array_get(list, i)))) {
			return out_of_memory(err);
		}
	}
	return VEC_PUSH(&arguments->argv, NULL) || out_of_memory(err);
}

static bool add_variable(
	struct arguments *arguments, const char *name, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	if (name[0] == '\0' || strchr(name, '=') != NULL) {
		json_t *shown = json_string(name);
		params_refuse(err, "the name of a variable in env", shown == NULL ? json_null() : shown,
			"a text without \"=\", not empty");
		json_decref(shown);
		return false;
	}
	if (!json_is_null(value) &&
		(!json_is_string(value) || strlen(text) != json_string_length(value))) {
		char member[160];
		size_t len = strlen(name);
		len = len < sizeof(member) - 8 ? len : text_cut(name, sizeof(member) - 8);
		snprintf(member, sizeof(member), "env.%.*s", (int)len, name);
		return params_refuse(err, member, value, "a string without NUL, or null to unset it");
	}
	size_t bytes = strlen(name) + (text == NULL ? 0 : strlen(text)) + 2;
	char *pair = malloc(bytes);
	if (pair == NULL) {
		return out_of_memory(err);
	}
	snprintf(pair, bytes, "%s%s%s", name, text == NULL ? "" : "=", text == NULL ? "" : text);
	if (!VEC_PUSH(&arguments->env, pair)) {
		free(pair);
		return out_of_memory(err);
	}
	return true;
}

/* The end is no text that could be freed, so it is not counted. */
static bool end_env(struct arguments *arguments, struct error *err)
{
	if (!VEC_RESERVE(&arguments->env, arguments->env.len + 1)) {
		return out_of_memory(err);
	}
	arguments->env.items[arguments->env.len] = NULL;
	return true;
}

static bool fill_env(struct arguments *arguments, json_t *env, struct error *err)
{
	const char *name = NULL;
	json_t *value = NULL;
	if (json_object_size(env) > LIMIT_ENVIRONMENT) {
		error_set(err, ERROR_BAD_PARAMS, "env has %zu variables, at most %d are taken",
			json_object_size(env), LIMIT_ENVIRONMENT);
		return error_detail(err, "out_of_range");
	}
	json_object_foreach(env, name, value)
	{
		if (!add_variable(arguments, name, value, err)) {
			return false;
		}
	}
	return end_env(arguments, err);
}

static bool is_exact(const json_t *params)
{
	return strcmp(command_string(params, "env_mode", "overlay"), "exact") == 0;
}

/* What arms it comes behind what the client wants, so that it holds. */
static bool arm(struct daemon *daemon, struct arguments *arguments, const json_t *params,
	struct build *build, struct error *err)
{
	const json_t *gpu = json_object_get(params, "gpu");
	if (!json_is_object(gpu)) {
		return true;
	}
	char **environment =
		arming_environment_of((const char *const *)arguments->env.items, is_exact(params), err);
	struct gpu_program *program =
		environment != NULL ? arming_create(daemon, gpu, (const char *const *)environment, err)
							: NULL;
	free(environment);
	if (program == NULL) {
		return false;
	}
	build_take_gpu(build, program, arming_lets_program_ask(gpu));
	const char *const *additions = program->backend->environment(program->armed);
	for (; *additions != NULL; additions++) {
		char *pair = strdup(*additions);
		if (pair == NULL || !VEC_PUSH(&arguments->env, pair)) {
			free(pair);
			return out_of_memory(err);
		}
	}
	return end_env(arguments, err);
}

static void destroy(struct launch *launch)
{
	if (launch == NULL) {
		return;
	}
	process_unwatch(&launch->watch);
	json_decref(launch->profile);
	free(launch);
}

static void fail(struct launch *launch, const struct error *err)
{
	request_fail(launch->request, err);
	destroy(launch);
}

static void subscribe(
	const struct launch *launch, struct client *client, const struct process *process)
{
	struct events_subject build = {.build_key = process_key(process)};
	struct events_subject capture = {.capture_id = launch->capture_id};
	if (launch->subscribe) {
		events_subscribe(launch->daemon->events, client, &build);
	}
	if (launch->subscribe_capture && launch->capture_id[0] != '\0') {
		events_subscribe(launch->daemon->events, client, &capture);
	}
}

static void answer(struct launch *launch, struct process *process)
{
	struct client *client = request_client(launch->request);
	json_t *result = json_pack("{s:O,s:I}", "build_id", process_build_id(process), "pid",
		(json_int_t)process_pid(process));
	if (launch->capture_id[0] != '\0') {
		json_object_set_new(result, "capture_id", json_string(launch->capture_id));
	}
	build_add_paths(result, process);
	request_reply(launch->request, result);
	if (client != NULL) {
		subscribe(launch, client, process);
	}
	destroy(launch);
}

static bool start_profile(struct launch *launch, struct process *process)
{
	struct capture *capture = sampling_start(launch->daemon, launch->profile, process, 0,
		request_client(launch->request), &launch->refusal);
	if (capture == NULL) {
		return false;
	}
	snprintf(launch->capture_id, sizeof(launch->capture_id), "%s", capture_id(capture));
	return true;
}

static void on_ready(void *context, struct process *process)
{
	struct launch *launch = context;
	if (launch->profile != NULL && !start_profile(launch, process)) {
		/* The reply waits until the build is gone, so that its name is free when the client reads it. */
		process_cancel(process);
		return;
	}
	if (launch->hold) {
		answer(launch, process);
	}
}

static void on_running(void *context, struct process *process)
{
	answer(context, process);
}

static void undo_profile(struct launch *launch)
{
	struct capture *capture = launch->capture_id[0] == '\0'
								  ? NULL
								  : captures_find(launch->daemon->captures, launch->capture_id);
	if (capture != NULL) {
		capture_cancel_armed(capture);
	}
}

static void on_failed(void *context, struct process *process, const struct error *err)
{
	(void)process;
	struct launch *launch = context;
	undo_profile(launch);
	struct error why = launch->refusal.code != ERROR_NONE ? launch->refusal : *err;
	fail(launch, &why);
}

static void on_exited(void *context, struct process *process)
{
	struct launch *launch = context;
	struct error why = launch->refusal;
	if (why.code == ERROR_NONE) {
		error_set(
			&why, ERROR_LAUNCH_FAILED, "build %s was stopped before it ran", process_key(process));
	}
	fail(launch, &why);
}

static const struct process_watch_ops watch_ops = {
	.ready = on_ready,
	.running = on_running,
	.failed = on_failed,
	.exited = on_exited,
};

static struct launch *create(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct launch *launch = calloc(1, sizeof(*launch));
	if (launch == NULL) {
		return NULL;
	}
	launch->daemon = daemon;
	launch->request = request;
	launch->watch = (struct process_watch){.ops = &watch_ops, .context = launch};
	launch->profile = json_incref(json_object_get(params, "profile"));
	launch->hold = command_boolean(params, "hold", false);
	launch->subscribe = command_boolean(params, "subscribe", true);
	launch->subscribe_capture = command_boolean(launch->profile, "subscribe", launch->subscribe);
	return launch;
}

/* In the order of enum process_stdio. */
static const char *const stdios[] = {"pipe", "null", "file", "pty", NULL};

static enum process_stdio stdio_of(const json_t *params)
{
	const char *asked = command_string(params, "stdio", "pipe");
	int kind = PROCESS_STDIO_PIPE;
	while (stdios[kind + 1] != NULL && strcmp(stdios[kind], asked) != 0) {
		kind++;
	}
	return (enum process_stdio)kind;
}

static struct process_options options_of(const json_t *params, const struct arguments *arguments)
{
	return (struct process_options){
		.build_id = json_object_get(params, "build_id"),
		.argv = arguments->argv.items,
		.cwd = command_string(params, "cwd", NULL),
		.env = (const char *const *)arguments->env.items,
		.env_exact = is_exact(params),
		.stdio = stdio_of(params),
		.leave = strcmp(command_string(params, "on_daemon_exit", "kill"), "leave") == 0,
		.profiler_pid = getpid(),
		.hold = command_boolean(params, "hold", false),
	};
}

static void launch(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct arguments arguments = {0};
	struct launch *launch = create(daemon, request, params);
	struct build *build = build_create(daemon);
	struct process *process = NULL;
	if (launch == NULL || build == NULL) {
		out_of_memory(&err);
	} else if (fill_argv(&arguments, json_object_get(params, "argv"), &err) &&
			   fill_env(&arguments, json_object_get(params, "env"), &err) &&
			   arm(daemon, &arguments, params, build, &err)) {
		struct process_options options = options_of(params, &arguments);
		process = processes_launch(daemon->processes, &options, &launch->watch, &err);
	}
	arguments_finish(&arguments);
	if (process == NULL) {
		build_destroy(build);
		destroy(launch);
		request_fail(request, &err);
		return;
	}
	build_begin(build, process);
}

static void launch_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct arguments arguments = {0};
	if (!arming_needs_check(json_object_get(params, "gpu"))) {
		launch(daemon, request, params);
		return;
	}
	char **environment = fill_env(&arguments, json_object_get(params, "env"), &err)
							 ? arming_environment_of(
								   (const char *const *)arguments.env.items, is_exact(params), &err)
							 : NULL;
	arguments_finish(&arguments);
	if (environment != NULL) {
		device_check(daemon, request, params, environment, launch);
	} else {
		request_fail(request, &err);
	}
}

static const char *const env_modes[] = {"overlay", "exact", NULL};
static const char *const daemon_exits[] = {"kill", "leave", NULL};

static const struct param params_table[] = {
	{.name = "argv",
		.type = PARAM_STRINGS,
		.required = true,
		.min = 1,
		.max = LIMIT_ARGUMENTS,
		.about = "The program, looked up in the effective PATH, and its arguments."},
	{.name = "cwd", .type = PARAM_PATH, .about = "The folder to start in; left out: the daemon's."},
	{.name = "env", .type = PARAM_OBJECT, .about = "Environment variables: strings; null unsets."},
	{.name = "env_mode",
		.type = PARAM_ENUM,
		.choices = env_modes,
		.fallback = "\"overlay\"",
		.about = "On top of the daemon's own environment, or nothing else."},
	{.name = "build_id",
		.type = PARAM_ID,
		.about = "The client's name for it; left out: one is made."},
	{.name = "stdio",
		.type = PARAM_ENUM,
		.choices = stdios,
		.fallback = "\"pipe\"",
		.about = "Pipes (input by WriteStdin, output by ProcessOutput and GetOutput), nothing, "
				 "files, or a terminal."},
	{.name = "hold",
		.type = PARAM_BOOLEAN,
		.fallback = "false",
		.about = "Stop before the first instruction, until ResumeProcess."},
	{.name = "profile",
		.type = PARAM_OBJECT,
		.members = sampling_params + SAMPLING_TARGET_PARAMS,
		.about = "A StartSamplingProfile that begins with the first instruction; if it is refused "
				 "nothing runs."},
	{.name = "gpu",
		.type = PARAM_OPTIONS,
		.members = arming_params,
		.fallback = "false",
		.about = "Arm the program for StartGpuTrace."},
	{.name = "on_daemon_exit",
		.type = PARAM_ENUM,
		.choices = daemon_exits,
		.fallback = "\"kill\"",
		.about = "What becomes of it when the daemon ends, however: its group is killed, or it is "
				 "left (only with stdio null or file)."},
	{.name = "subscribe",
		.type = PARAM_BOOLEAN,
		.fallback = "true",
		.about = "Send this connection the build's events."},
	{.name = "request_key",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Within 10 minutes a repeated request with it returns the first result."},
	{.name = NULL},
};

static const char *const events[] = {
	EVENT_PROCESS_STARTED, EVENT_PROCESS_OUTPUT, EVENT_PROCESS_EXITED, NULL};
static const char *const errors[] = {"build_exists", "launch_failed", "limit_exceeded",
	"unsupported", "hz_too_high", "not_permitted", "backend_unavailable", "disk_full", "io",
	"shutting_down", NULL};

const struct command launch_process_command = {
	.name = "LaunchProcess",
	.params = params_table,
	.run = launch_process,
	.about = "Starts a program; answers when it runs, or waits when held.",
	.result = "build_id, pid, capture_id?, stdout_path?, stderr_path?",
	.events = events,
	.errors = errors,
};
