#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/build.h"
#include "commands/methods.h"
#include "commands/page.h"
#include "commands/params.h"
#include "commands/process_cursor.h"
#include "commands/signal_names.h"
#include "process/descendants.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* A request that waits for what becomes of a process. */
struct process_wait {
	struct request *request;
	struct process_watch watch;
};

static void destroy(struct process_wait *wait)
{
	process_unwatch(&wait->watch);
	free(wait);
}

static void on_gone(struct request *request, void *context)
{
	destroy(context);
	request_drop(request);
}

static struct process_wait *create(
	struct request *request, struct process *process, const struct process_watch_ops *ops)
{
	struct process_wait *wait = calloc(1, sizeof(*wait));
	if (wait == NULL) {
		struct error err = {0};
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
		request_fail(request, &err);
		return NULL;
	}
	wait->request = request;
	wait->watch = (struct process_watch){.ops = ops, .context = wait};
	process_watch(process, &wait->watch);
	request_on_gone(request, on_gone, wait);
	request_allow_cancel(request);
	return wait;
}

static void reply(struct process_wait *wait, json_t *result)
{
	struct request *request = wait->request;
	destroy(wait);
	request_reply(request, result);
}

static void fail(struct process_wait *wait, const struct error *err)
{
	struct request *request = wait->request;
	destroy(wait);
	request_fail(request, err);
}

static json_t *state_result(const char *state)
{
	return json_pack("{s:s}", "state", state);
}

static void resume_running(void *context, struct process *process)
{
	reply(context, state_result(process_state_name(process_state(process))));
}

static void resume_failed(void *context, struct process *process, const struct error *err)
{
	(void)process;
	fail(context, err);
}

static void resume_exited(void *context, struct process *process)
{
	struct error err = {0};
	error_set(
		&err, ERROR_BUILD_NOT_RUNNING, "build %s was stopped before it ran", process_key(process));
	const struct error *why = process_launch_error(process);
	fail(context, why != NULL ? why : &err);
}

static const struct process_watch_ops resume_ops = {
	.running = resume_running,
	.failed = resume_failed,
	.exited = resume_exited,
};

static void resume_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	if (process_state(process) == PROCESS_RUNNING) {
		request_reply(request, state_result("running"));
		return;
	}
	struct process_wait *wait = create(request, process, &resume_ops);
	struct error err = {0};
	if (wait != NULL && !process_resume(process, &err)) {
		fail(wait, &err);
	}
}

static void add_survivors(json_t *result, struct process *process)
{
	pid_t pids[LIMIT_SURVIVORS];
	size_t count = process_survivors(process, pids);
	if (count == 0) {
		return;
	}
	json_t *survivors = json_array();
	for (size_t i = 0; i < count && i < LIMIT_SURVIVORS; i++) {
		char name[DESCENDANT_NAME_BYTES];
		descendant_name(pids[i], name);
		json_t *survivor = json_pack("{s:I}", "pid", (json_int_t)pids[i]);
		text_set(survivor, "name", name, strlen(name));
		json_array_append_new(survivors, survivor);
	}
	json_object_set_new(result, "survivors", survivors);
	json_object_set_new(result, "survivor_count", json_integer((json_int_t)count));
}

static json_t *exit_result(struct process *process)
{
	const struct process_exit *end = process_exit(process);
	json_t *result = json_pack("{s:o,s:o}", "exit_code",
		end->was_signalled ? json_null() : json_integer(end->exit_code), "signal",
		signal_to_json(end->was_signalled ? end->signal : 0));
	add_survivors(result, process);
	return result;
}

static void stop_exited(void *context, struct process *process)
{
	reply(context, exit_result(process));
}

/* It was stopped before it ever ran: there is neither. */
static void stop_failed(void *context, struct process *process, const struct error *err)
{
	(void)process;
	(void)err;
	reply(context, json_pack("{s:n,s:n}", "exit_code", "signal"));
}

static const struct process_watch_ops stop_ops = {
	.failed = stop_failed,
	.exited = stop_exited,
};

static void stop_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	if (process_state(process) == PROCESS_EXITED) {
		request_reply(request, exit_result(process));
		return;
	}
	struct process_wait *wait = create(request, process, &stop_ops);
	struct error err = {0};
	int number = command_signal(params, "signal", SIGTERM);
	uint64_t grace_ms = (uint64_t)command_integer(params, "grace_ms", LIMIT_GRACE_MS_DEFAULT);
	if (wait != NULL && !process_stop(process, number, grace_ms, &err)) {
		fail(wait, &err);
	}
}

static void signal_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	if (process_signal(process, command_signal(params, "signal", 0), &err)) {
		request_reply(request, NULL);
	} else {
		request_fail(request, &err);
	}
}

static void list_processes(struct daemon *daemon, struct request *request, const json_t *params)
{
	const char *cursor = command_string(params, "cursor", NULL);
	struct error err = {0};
	if (cursor != NULL && !process_is_cursor(cursor)) {
		params_refuse(
			&err, "cursor", json_object_get(params, "cursor"), "next_cursor of the page before");
		request_fail(request, &err);
		return;
	}
	char last[PROCESS_CURSOR_BYTES] = "";
	struct process *process = cursor == NULL ? processes_next(daemon->processes, NULL)
											 : process_after_cursor(daemon, cursor);
	struct page page;
	page_init(&page, PROCESS_CURSOR_BYTES);
	while (process != NULL && page_add(&page, build_record(daemon, process))) {
		process_cursor(process, last);
		process = processes_next(daemon->processes, process);
	}
	request_reply(request, page_finish(&page, "processes", last));
}

static void get_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct process *process = build_find(daemon, request, params);
	if (process != NULL) {
		request_reply(request, build_record(daemon, process));
	}
}

static const struct param build_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = NULL},
};

static const struct param stop_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = "signal",
		.type = PARAM_SIGNAL,
		.fallback = "\"TERM\"",
		.about = "What its group is asked to end with."},
	{.name = "grace_ms",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_DURATION_MS,
		.fallback = "5000",
		.about = "How long to wait before the whole group is killed."},
	{.name = NULL},
};

_Static_assert(LIMIT_GRACE_MS_DEFAULT == 5000, "the table above tells the default as text");

static const struct param signal_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = "signal",
		.type = PARAM_SIGNAL,
		.required = true,
		.about = "What its process alone is sent, not its group."},
	{.name = NULL},
};

static const struct param list_params[] = {
	{.name = "cursor",
		.type = PARAM_STRING,
		.min = 1,
		.max = PROCESS_CURSOR_BYTES - 1,
		.about = "next_cursor of the page before."},
	{.name = NULL},
};

static const char *const find_errors[] = {"build_not_found", NULL};
static const char *const stop_errors[] = {"build_not_found", "not_permitted", NULL};
static const char *const resume_errors[] = {
	"build_not_found", "build_not_running", "launch_failed", "not_permitted", NULL};
static const char *const signal_errors[] = {
	"build_not_found", "build_not_running", "not_permitted", NULL};

#define RECORD                                                                                     \
	"build_id, pid, argv, argv_truncated?, state, exit_code, signal, started_unix_us, captures, "  \
	"adopted?, stdout_path?, stderr_path?"

const struct command resume_process_command = {
	.name = "ResumeProcess",
	.params = build_params,
	.run = resume_process,
	.about = "Lets a held build run; answers when it does.",
	.result = "state",
	.errors = resume_errors,
	.runs_while_stopping = true,
};

const struct command stop_process_command = {
	.name = "StopProcess",
	.params = stop_params,
	.run = stop_process,
	.about = "Ends a build and its group; answers when it has ended.",
	.result = "exit_code, signal, survivors? [pid, name], survivor_count?",
	.errors = stop_errors,
	.runs_while_stopping = true,
};

const struct command signal_process_command = {
	.name = "SignalProcess",
	.params = signal_params,
	.run = signal_process,
	.about = "Sends a signal to a running build's process.",
	.result = "",
	.errors = signal_errors,
	.runs_while_stopping = true,
};

const struct command list_processes_command = {
	.name = "ListProcesses",
	.params = list_params,
	.run = list_processes,
	.about = "The builds that live, and those that ended within the hour.",
	.result = "processes [" RECORD "], next_cursor?",
	.runs_while_stopping = true,
};

const struct command get_process_command = {
	.name = "GetProcess",
	.params = build_params,
	.run = get_process,
	.about = "One build.",
	.result = RECORD,
	.errors = find_errors,
	.runs_while_stopping = true,
};
