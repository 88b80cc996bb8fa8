#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/build.h"
#include "commands/captures.h"
#include "commands/methods.h"
#include "commands/page.h"
#include "commands/params.h"
#include "commands/process_cursor.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "store/capture_id.h"

/*
 * Subscribe, Unsubscribe and Cancel. A subscription's first reply tells what is there now; pages behind it are asked for with a cursor,
 * "<subscription>/p/<cursor of ListProcesses>" or "<subscription>/c/<capture_id>". Events from next_seq on tell what changes.
 */
#define CURSOR_BYTES 256
#define NUMBER_BYTES 24

/* What a snapshot is of, and where it goes on. */
struct snapshot {
	struct daemon *daemon;
	uint64_t id;
	const char *build_key, *capture_id;        /* NULL: all */
	char process_cursor[PROCESS_CURSOR_BYTES]; /* "": from the beginning */
	char capture_cursor[CAPTURE_ID_BYTES];
	bool processes_told;
	char next[CURSOR_BYTES]; /* "": this was all */
};

static bool is_wanted_process(const struct snapshot *snapshot, const struct process *process)
{
	if (snapshot->build_key == NULL) {
		return snapshot->capture_id == NULL;
	}
	return strcmp(process_key(process), snapshot->build_key) == 0;
}

static void tell_processes(struct snapshot *snapshot, struct page *page)
{
	struct daemon *daemon = snapshot->daemon;
	struct process *process = snapshot->process_cursor[0] == '\0'
								  ? processes_next(daemon->processes, NULL)
								  : process_after_cursor(daemon, snapshot->process_cursor);
	char last[PROCESS_CURSOR_BYTES] = "";
	for (; process != NULL; process = processes_next(daemon->processes, process)) {
		if (is_wanted_process(snapshot, process) &&
			!page_add(page, build_record(daemon, process))) {
			snprintf(
				snapshot->next, sizeof(snapshot->next), "%" PRIu64 "/p/%s", snapshot->id, last);
			return;
		}
		process_cursor(process, last);
	}
	snapshot->processes_told = true;
}

static bool is_wanted_capture(const struct snapshot *snapshot, const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "capture_id"));
	if (snapshot->capture_id != NULL && strcmp(id, snapshot->capture_id) == 0) {
		return true;
	}
	char key[LIMIT_ID_BYTES + 1] = "";
	processes_key(json_object_get(record, "build_id"), key);
	if (snapshot->build_key != NULL) {
		return strcmp(key, snapshot->build_key) == 0;
	}
	return snapshot->capture_id == NULL && captures_find(snapshot->daemon->captures, id) != NULL;
}

/* Those that run; with a filter also those that have ended. */
static void tell_captures(struct snapshot *snapshot, struct page *page)
{
	const char *last = snapshot->capture_cursor;
	const json_t *kept = NULL;
	while ((kept = store_next(snapshot->daemon->store, last)) != NULL) {
		const char *id = json_string_value(json_object_get(kept, "capture_id"));
		json_t *record = captures_record(snapshot->daemon, id, NULL);
		if (record == NULL || !is_wanted_capture(snapshot, record)) {
			json_decref(record);
		} else if (!page_add(page, record)) {
			snprintf(
				snapshot->next, sizeof(snapshot->next), "%" PRIu64 "/c/%s", snapshot->id, last);
			return;
		}
		last = id;
	}
}

/* {processes, captures}; owned. */
static json_t *take_snapshot(struct snapshot *snapshot)
{
	struct page processes, captures;
	page_init(&processes, 2 * CURSOR_BYTES);
	if (!snapshot->processes_told) {
		tell_processes(snapshot, &processes);
	}
	page_init(&captures, processes.bytes);
	captures.is_shared = json_array_size(processes.items) > 0;
	if (snapshot->processes_told) {
		tell_captures(snapshot, &captures);
	}
	return json_pack("{s:o, s:o}", "processes", processes.items, "captures", captures.items);
}

static void answer(struct snapshot *snapshot, struct request *request, uint64_t next_seq, bool gap)
{
	char id[NUMBER_BYTES];
	snprintf(id, sizeof(id), "%" PRIu64, snapshot->id);
	json_t *told = take_snapshot(snapshot);
	json_t *result = json_pack("{s:s, s:o, s:I, s:b}", "subscription_id", id, "snapshot", told,
		"next_seq", (json_int_t)next_seq, "gap", gap);
	if (snapshot->next[0] != '\0') {
		json_object_set_new(result, "next_cursor", json_string(snapshot->next));
	}
	request_reply(request, result);
}

static bool parse_id(const char *text, uint64_t *id, const char **rest)
{
	char *end = NULL;
	*id = strtoull(text, &end, 10);
	*rest = end;
	return text[0] >= '0' && text[0] <= '9' && *id > 0;
}

static bool parse_cursor(const struct daemon *daemon, const struct client *client, const char *text,
	struct snapshot *snapshot)
{
	const char *rest = NULL;
	uint64_t unix_us = 0;
	struct events_filter filter;
	if (client == NULL || !parse_id(text, &snapshot->id, &rest) ||
		!events_get(daemon->events, client, snapshot->id, &filter)) {
		return false;
	}
	snapshot->build_key = filter.build_key;
	snapshot->capture_id = filter.capture_id;
	bool is_process = strncmp(rest, "/p/", 3) == 0;
	if (!is_process && strncmp(rest, "/c/", 3) != 0) {
		return false;
	}
	snapshot->processes_told = !is_process;
	rest += 3;
	if (is_process) {
		snprintf(snapshot->process_cursor, sizeof(snapshot->process_cursor), "%s", rest);
		return *rest == '\0' || process_is_cursor(rest);
	}
	snprintf(snapshot->capture_cursor, sizeof(snapshot->capture_cursor), "%s", rest);
	return *rest == '\0' || capture_id_parse(rest, &unix_us);
}

/* The names as texts, NULL-terminated; NULL: all, or memory is out. Owned. */
static const char **names_of(const json_t *list)
{
	size_t count = json_array_size(list);
	const char **names = count > 0 ? calloc(count + 1, sizeof(*names)) : NULL;
	for (size_t i = 0; names != NULL && i < count; i++) {
		names[i] = json_string_value(json_array_get(list, i));
	}
	return names;
}

/* What came before the subscription, when it was asked for: *since_seq; *gap: not all of it is known any more. */
static bool read_since(const struct daemon *daemon, const json_t *params, uint64_t *since_seq,
	bool *gap, struct error *err)
{
	const char *instance = command_string(params, "instance_id", NULL);
	bool has_since = json_object_get(params, "since_seq") != NULL;
	*since_seq = (uint64_t)command_integer(params, "since_seq", 0);
	*gap = false;
	if (!has_since) {
		*since_seq = UINT64_MAX;
		return true;
	}
	if (instance == NULL) {
		error_set(
			err, ERROR_BAD_PARAMS, "since_seq needs instance_id, the daemon's that it was of");
		return error_detail(err, "missing_parameter");
	}
	if (strcmp(instance, daemon->instance_id) != 0) {
		/* Another daemon's numbers: everything of this one is new. */
		*since_seq = 0;
		*gap = true;
	} else if (*since_seq >= events_next_seq(daemon->events)) {
		return error_set(err, ERROR_BAD_PARAMS,
			"since_seq is %" PRIu64 ", but the next event will be number %" PRIu64, *since_seq,
			events_next_seq(daemon->events));
	} else {
		*gap = !events_reach(daemon->events, *since_seq);
	}
	return true;
}

static void go_on(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct snapshot snapshot = {.daemon = daemon};
	struct client *client = request_client(request);
	const char *cursor = command_string(params, "cursor", "");
	if (!parse_cursor(daemon, client, cursor, &snapshot)) {
		params_refuse(&err, "cursor", json_object_get(params, "cursor"),
			"next_cursor of the page before, of a subscription of this connection");
		request_fail(request, &err);
		return;
	}
	answer(&snapshot, request, events_next_seq(daemon->events), false);
}

static void subscribe(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	char key[LIMIT_ID_BYTES + 1];
	uint64_t since_seq = 0, next_seq = events_next_seq(daemon->events);
	bool gap = false;
	struct client *client = request_client(request);
	if (json_object_get(params, "cursor") != NULL) {
		go_on(daemon, request, params);
		return;
	}
	const char **names = names_of(json_object_get(params, "events"));
	struct events_filter filter = {
		.names = names,
		.build_key = processes_key(json_object_get(params, "build_id"), key) ? key : NULL,
		.capture_id = command_string(params, "capture_id", NULL),
	};
	struct snapshot snapshot = {
		.daemon = daemon, .build_key = filter.build_key, .capture_id = filter.capture_id};
	bool ok = client != NULL && read_since(daemon, params, &since_seq, &gap, &err) &&
			  (snapshot.id = events_add(daemon->events, client, &filter, &err)) != 0;
	free(names);
	if (client == NULL) {
		request_drop(request);
	} else if (!ok) {
		request_fail(request, &err);
	} else {
		answer(&snapshot, request, next_seq, gap);
		if (since_seq != UINT64_MAX) {
			events_replay(daemon->events, client, snapshot.id, since_seq);
		}
	}
}

static void unsubscribe(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct client *client = request_client(request);
	const char *text = command_string(params, "subscription_id", ""), *rest = "";
	uint64_t id = 0;
	if (client != NULL && parse_id(text, &id, &rest) && *rest == '\0' &&
		events_remove(daemon->events, client, id)) {
		request_reply(request, NULL);
		return;
	}
	params_refuse(&err, "subscription_id", json_object_get(params, "subscription_id"),
		"one that Subscribe gave this connection");
	request_fail(request, &err);
}

static void cancel(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)daemon;
	struct client *client = request_client(request);
	bool cancelled =
		client != NULL && request_cancel(client, json_object_get(params, "request_id"));
	request_reply(request, json_pack("{s:b}", "cancelled", cancelled));
}

static const char *const event_names[] = {EVENT_PROCESS_STARTED, EVENT_PROCESS_OUTPUT,
	EVENT_PROCESS_EXITED, EVENT_SAMPLING_PROFILE_STARTED, EVENT_SAMPLING_PROFILE_PROGRESS,
	EVENT_SAMPLING_PROFILE_FINISHED, EVENT_SAMPLING_PROFILE_FAILED, EVENT_GPU_TRACE_STARTED,
	EVENT_GPU_TRACE_PROGRESS, EVENT_GPU_TRACE_FINISHED, EVENT_GPU_TRACE_FAILED,
	EVENT_CAPTURE_RECOVERED, NULL};

static const struct param subscribe_params[] = {
	{.name = "events",
		.type = PARAM_STRINGS,
		.min = 1,
		.max = 64,
		.choices = event_names,
		.about = "Which events; left out: all. DaemonStopping and EventsDropped always come."},
	{.name = "build_id",
		.type = PARAM_ID,
		.about = "Only about this build, also one that is launched later."},
	{.name = "capture_id",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Only about this capture; with build_id: about either."},
	{.name = "since_seq",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_INTEGER,
		.about =
			"The last event that was seen: what is kept after it is sent again, behind the reply."},
	{.name = "instance_id",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "The daemon that since_seq is of."},
	{.name = "cursor",
		.type = PARAM_STRING,
		.min = 1,
		.max = CURSOR_BYTES - 1,
		.about = "next_cursor of the page before: more of its snapshot, no new subscription."},
	{.name = NULL},
};

static const struct param unsubscribe_params[] = {
	{.name = "subscription_id",
		.type = PARAM_STRING,
		.required = true,
		.min = 1,
		.max = NUMBER_BYTES - 1,
		.about = "The subscription."},
	{.name = NULL},
};

static const struct param cancel_params[] = {
	{.name = "request_id",
		.type = PARAM_ID,
		.required = true,
		.about = "The id of a request of this connection that has no reply yet."},
	{.name = NULL},
};

static const char *const subscribe_errors[] = {"limit_exceeded", NULL};

const struct command subscribe_command = {
	.name = "Subscribe",
	.params = subscribe_params,
	.run = subscribe,
	.about = "Sends this connection the events of others, after what is there now.",
	.result = "subscription_id, snapshot {processes [record], captures [record]}, next_seq, gap, "
			  "next_cursor?",
	.errors = subscribe_errors,
	.runs_while_stopping = true,
};

const struct command unsubscribe_command = {
	.name = "Unsubscribe",
	.params = unsubscribe_params,
	.run = unsubscribe,
	.about = "Ends a subscription.",
	.result = "",
	.runs_while_stopping = true,
};

const struct command cancel_command = {
	.name = "Cancel",
	.params = cancel_params,
	.run = cancel,
	.about = "Ends a request of this connection that only waits; what it waits for goes on.",
	.result = "cancelled",
	.runs_while_stopping = true,
};
