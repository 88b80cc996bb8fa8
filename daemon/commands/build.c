#include "commands/build.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "commands/output_text.h"
#include "commands/program_trace.h"
#include "commands/signal_names.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/text.h"

#define CAPTURES_SHOWN 100 /* the newest of one build */

struct build_capture {
	char id[LIMIT_ID_BYTES];
};

struct build {
	struct daemon *daemon;
	struct process_watch watch; /* watch.process: NULL after the exit */
	struct build *next;
	pid_t pid; /* with started_unix_us: which process it was, after the exit */
	uint64_t started_unix_us;
	struct output_text streams[2];
	VEC(struct build_capture) captures;
	struct gpu_program *gpu; /* a hold, until the exit; NULL */
	struct program_trace program_trace;
};

/* The context of one output_text_feed. */
struct feed {
	struct build *build;
	struct process *process;
	enum process_stream stream;
};

static void release_gpu(struct build *build)
{
	program_trace_end(&build->program_trace);
	gpu_program_release(build->gpu);
	build->gpu = NULL;
}

void build_destroy(struct build *build)
{
	if (build == NULL) {
		return;
	}
	process_unwatch(&build->watch);
	release_gpu(build);
	VEC_FINISH(&build->captures);
	free(build);
}

static void take_out(struct build *build)
{
	struct build **link = &build->daemon->builds;
	while (*link != NULL && *link != build) {
		link = &(*link)->next;
	}
	if (*link == build) {
		*link = build->next;
	}
}

/* Of those that have exited, the oldest go when there are more than the table of processes remembers. */
static void trim(struct daemon *daemon)
{
	size_t count = 0;
	for (const struct build *build = daemon->builds; build != NULL; build = build->next) {
		count++;
	}
	struct build *next = NULL;
	for (struct build *build = daemon->builds; build != NULL; build = next) {
		next = build->next;
		if (count > LIMIT_BUILDS + LIMIT_EXITED_BUILDS && build->watch.process == NULL) {
			take_out(build);
			build_destroy(build);
			count--;
		}
	}
}

static void publish(struct daemon *daemon, const struct process *process, const char *name,
	enum events_class class, json_t *params)
{
	struct events_subject subject = {.build_key = process_key(process)};
	if (params == NULL) {
		log_write(&daemon->log, LOG_ERROR, "commands", "%s of build %s: out of memory", name,
			process_key(process));
		return;
	}
	events_publish(daemon->events, name, class, &subject, params);
}

static void on_running(void *context, struct process *process)
{
	struct build *build = context;
	publish(build->daemon, process, EVENT_PROCESS_STARTED, EVENTS_LOSSLESS,
		json_pack("{s:O,s:I}", "build_id", process_build_id(process), "pid",
			(json_int_t)process_pid(process)));
}

static void on_piece(void *context, uint64_t offset, json_t *piece)
{
	const struct feed *feed = context;
	json_t *params =
		json_pack("{s:O,s:s,s:I}", "build_id", process_build_id(feed->process), "stream",
			feed->stream == PROCESS_STDOUT ? "stdout" : "stderr", "offset", (json_int_t)offset);
	if (params != NULL) {
		json_object_update(params, piece);
	}
	json_decref(piece);
	publish(feed->build->daemon, feed->process, EVENT_PROCESS_OUTPUT, EVENTS_DROPPABLE, params);
}

static void on_output(void *context, struct process *process, enum process_stream stream,
	uint64_t offset, const char *bytes, size_t len)
{
	struct build *build = context;
	struct feed feed = {build, process, stream};
	output_text_feed(&build->streams[stream - PROCESS_STDOUT], offset, bytes, len, on_piece, &feed);
}

/* Of an adopted one all of it is null. */
static json_t *exit_params(const struct process *process)
{
	const struct process_exit *end = process_exit(process);
	const struct error *why = process_launch_error(process);
	bool is_known = !end->was_observed;
	json_t *params = json_pack("{s:O}", "build_id", process_build_id(process));
	json_object_set_new(params, "exit_code",
		is_known && !end->was_signalled ? json_integer(end->exit_code) : json_null());
	json_object_set_new(params, "signal", signal_to_json(end->was_signalled ? end->signal : 0));
	json_object_set_new(
		params, "core_dumped", is_known ? json_boolean(end->core_dumped) : json_null());
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {{"user_us", end->user_us}, {"system_us", end->system_us},
		{"max_rss_bytes", end->max_rss_bytes}};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		json_object_set_new(params, numbers[i].name,
			is_known ? json_integer((json_int_t)numbers[i].value) : json_null());
	}
	if (why != NULL) {
		json_object_set_new(params, "error", error_to_json(why));
	}
	return params;
}

static void settle(struct daemon *daemon)
{
	if (daemon->settled != NULL) {
		daemon->settled(daemon);
	}
}

/* A capture of the build can end after it, begun by another client or by the program itself. */
static void pass_on_captures(const struct build *build, const char *build_key)
{
	struct daemon *daemon = build->daemon;
	for (size_t i = 0; i < build->captures.len; i++) {
		const char *id = build->captures.items[i].id;
		if (captures_find(daemon->captures, id) != NULL) {
			events_pass_on(daemon->events, build_key, id);
		}
	}
}

static void on_exited(void *context, struct process *process)
{
	struct build *build = context;
	struct daemon *daemon = build->daemon;
	struct events_subject subject = {.build_key = process_key(process)};
	for (int i = 0; i < 2; i++) {
		struct feed feed = {build, process, (enum process_stream)(PROCESS_STDOUT + i)};
		output_text_end(&build->streams[i], on_piece, &feed);
	}
	release_gpu(build);
	publish(daemon, process, EVENT_PROCESS_EXITED, EVENTS_LOSSLESS, exit_params(process));
	pass_on_captures(build, subject.build_key);
	/* Its name may be used again, by a build of which these clients did not ask to hear. */
	events_forget(daemon->events, &subject);
	build->pid = process_pid(process);
	build->started_unix_us = process_started_unix_us(process);
	process_unwatch(&build->watch);
	settle(daemon);
}

static void on_failed(void *context, struct process *process, const struct error *err)
{
	(void)err;
	struct build *build = context;
	struct daemon *daemon = build->daemon;
	struct events_subject subject = {.build_key = process_key(process)};
	events_forget(daemon->events, &subject);
	take_out(build);
	build_destroy(build);
	settle(daemon);
}

static const struct process_watch_ops watch_ops = {
	.running = on_running,
	.failed = on_failed,
	.output = on_output,
	.exited = on_exited,
};

struct build *build_create(struct daemon *daemon)
{
	struct build *build = calloc(1, sizeof(*build));
	if (build != NULL) {
		build->daemon = daemon;
		build->watch = (struct process_watch){.ops = &watch_ops, .context = build};
	}
	return build;
}

void build_begin(struct build *build, struct process *process)
{
	struct build **link = &build->daemon->builds;
	while (*link != NULL) {
		link = &(*link)->next;
	}
	*link = build;
	trim(build->daemon);
	process_watch(process, &build->watch);
	program_trace_begin(&build->program_trace, process, build->gpu);
}

static struct build *find(const struct daemon *daemon, const struct process *process)
{
	for (struct build *build = daemon->builds; build != NULL; build = build->next) {
		bool is_same = build->watch.process != NULL
						   ? build->watch.process == process
						   : build->pid == process_pid(process) &&
								 build->started_unix_us == process_started_unix_us(process);
		if (is_same) {
			return build;
		}
	}
	return NULL;
}

void build_take_gpu(struct build *build, struct gpu_program *program, bool lets_program_ask)
{
	build->gpu = program;
	build->program_trace =
		(struct program_trace){.daemon = build->daemon, .is_allowed = lets_program_ask};
}

struct gpu_program *build_gpu(const struct daemon *daemon, const struct process *process)
{
	const struct build *build = find(daemon, process);
	return build != NULL ? build->gpu : NULL;
}

void build_add_capture(struct daemon *daemon, const struct process *process, const char *capture_id)
{
	struct build *build = find(daemon, process);
	if (build == NULL) {
		return;
	}
	if (build->captures.len >= CAPTURES_SHOWN) {
		build->captures.len--;
		memmove(build->captures.items, build->captures.items + 1,
			build->captures.len * sizeof(build->captures.items[0]));
	}
	struct build_capture capture;
	snprintf(capture.id, sizeof(capture.id), "%s", capture_id);
	if (!VEC_PUSH(&build->captures, capture)) {
		log_write(&daemon->log, LOG_WARN, "commands", "capture %s: out of memory", capture_id);
	}
}

struct process *build_find(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct process *process =
		processes_find(daemon->processes, json_object_get(params, "build_id"), &err);
	if (process == NULL) {
		request_fail(request, &err);
	}
	return process;
}

struct process *build_find_owned(
	struct daemon *daemon, struct request *request, const json_t *params)
{
	struct process *process = build_find(daemon, request, params);
	if (process == NULL || !process_is_adopted(process)) {
		return process;
	}
	struct error err = {0};
	error_set(&err, ERROR_NOT_PERMITTED, "build %s was adopted: process %d is observed, not owned",
		process_key(process), (int)process_pid(process));
	error_detail(&err, "observed");
	error_hint(&err, "its parent owns it: ask the program that launched it");
	request_fail(request, &err);
	return NULL;
}

static json_t *captures_json(const struct daemon *daemon, const struct process *process)
{
	json_t *ids = json_array();
	const struct build *build = find(daemon, process);
	for (size_t i = 0; build != NULL && i < build->captures.len; i++) {
		const char *id = build->captures.items[i].id;
		/* One that was discarded is in neither. */
		if (captures_find(daemon->captures, id) != NULL || store_get(daemon->store, id) != NULL) {
			json_array_append_new(ids, json_string(id));
		}
	}
	return ids;
}

/* As much of argv as a record shows; the last shown argument may be a piece of itself. */
static void set_argv(json_t *object, const struct process *process)
{
	size_t count = 0, left = LIMIT_ARGV_SHOWN_BYTES;
	const char *const *argv = process_argv(process, &count);
	struct text_list shown = {0};
	bool truncated = false;
	for (size_t i = 0; i < count && !truncated; i++) {
		size_t len = strlen(argv[i]);
		if (len + 1 > left) {
			truncated = true;
			len = text_cut(argv[i], left == 0 ? 0 : left - 1);
		}
		if (len > 0 || !truncated) {
			text_list_add(&shown, argv[i], len);
			left -= len + 1;
		}
	}
	text_list_set(&shown, object, "argv");
	text_list_finish(&shown);
	if (truncated) {
		json_object_set_new(object, "argv_truncated", json_true());
	}
}

void build_add_paths(json_t *object, const struct process *process)
{
	char path[PATH_MAX];
	if (process_output_path(process, PROCESS_STDOUT, path)) {
		text_set(object, "stdout_path", path, strlen(path));
	}
	if (process_output_path(process, PROCESS_STDERR, path)) {
		text_set(object, "stderr_path", path, strlen(path));
	}
}

json_t *build_record(const struct daemon *daemon, const struct process *process)
{
	const struct process_exit *end = process_exit(process);
	json_t *record = json_pack("{s:O,s:I,s:s,s:o,s:o,s:I,s:o}", "build_id",
		process_build_id(process), "pid", (json_int_t)process_pid(process), "state",
		process_state_name(process_state(process)), "exit_code",
		end == NULL || end->was_signalled || end->was_observed ? json_null()
															   : json_integer(end->exit_code),
		"signal", signal_to_json(end != NULL && end->was_signalled ? end->signal : 0),
		"started_unix_us", (json_int_t)process_started_unix_us(process), "captures",
		captures_json(daemon, process));
	set_argv(record, process);
	if (record != NULL && process_is_adopted(process)) {
		json_object_set_new(record, "adopted", json_true());
	}
	build_add_paths(record, process);
	return record;
}

void builds_finish(struct daemon *daemon)
{
	while (daemon->builds != NULL) {
		struct build *build = daemon->builds;
		daemon->builds = build->next;
		build_destroy(build);
	}
}
