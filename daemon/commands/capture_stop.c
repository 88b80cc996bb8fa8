#include <stdlib.h>

#include "commands/methods.h"
#include "commands/page.h"
#include "protocol/limits.h"

/* StopCapture: waits for one capture, or for all that run, and answers with their final records. */

struct stop;

struct stop_item {
	struct stop *stop;
	struct capture_wait wait;
	json_t *record; /* owned; until the end: as it was when it was stopped */
};

struct stop {
	struct request *request;
	bool all;
	size_t left, count; /* left: not yet ended */
	struct stop_item items[];
};

static void destroy(struct stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		capture_unwait(&stop->items[i].wait);
		json_decref(stop->items[i].record);
	}
	free(stop);
}

/* A record that does not fit into the line is told by its id and state; GetCapture has the rest. */
static json_t *short_record(const json_t *record)
{
	return json_pack("{s:O*,s:O*}", "capture_id", json_object_get(record, "capture_id"), "state",
		json_object_get(record, "state"));
}

static json_t *all_records(const struct stop *stop)
{
	struct page page;
	page_init(&page, LIMIT_RUNNING_CAPTURES * 128);
	json_t *rest = json_array();
	for (size_t i = 0; i < stop->count; i++) {
		if (!page_add(&page, json_incref(stop->items[i].record))) {
			json_array_append_new(rest, short_record(stop->items[i].record));
		}
	}
	json_t *result = page_finish(&page, "captures", NULL);
	json_array_extend(json_object_get(result, "captures"), rest);
	json_decref(rest);
	return result;
}

static void answer(struct stop *stop)
{
	struct request *request = stop->request;
	json_t *result = stop->all ? all_records(stop) : json_incref(stop->items[0].record);
	destroy(stop);
	request_reply(request, result);
}

/* What a discarded capture's terminal event says, on the record that is no longer kept. */
static void mark_discarded(json_t *record)
{
	struct error err = {0};
	error_set(&err, ERROR_CANCELLED, "the capture %s was discarded",
		json_string_value(json_object_get(record, "capture_id")));
	json_object_set_new(record, "state", json_string("failed"));
	json_object_set_new(record, "error", error_to_json(&err));
}

static void on_ended(struct capture_wait *wait, const json_t *record)
{
	struct stop_item *item = wait->context;
	if (record != NULL) {
		json_decref(item->record);
		item->record = json_incref((json_t *)record);
	} else {
		mark_discarded(item->record);
	}
	if (--item->stop->left == 0) {
		answer(item->stop);
	}
}

static void on_gone(struct request *request, void *context)
{
	destroy(context);
	request_drop(request);
}

static struct stop *create(struct request *request, size_t count, bool all)
{
	struct stop *stop = calloc(1, sizeof(*stop) + count * sizeof(stop->items[0]));
	if (stop != NULL) {
		stop->request = request;
		stop->all = all;
	}
	return stop;
}

static void add(struct stop *stop, struct capture *capture)
{
	struct stop_item *item = &stop->items[stop->count++];
	item->stop = stop;
	item->record = capture_record(capture);
	item->wait = (struct capture_wait){.ended = on_ended, .context = item};
	stop->left++;
	capture_wait(capture, &item->wait);
}

/* The waits stand before the first is stopped, so that none can be missed; the ends come in later turns of the loop. */
static void begin(struct stop *stop, bool discard)
{
	request_on_gone(stop->request, on_gone, stop);
	request_allow_cancel(stop->request);
	for (size_t i = 0; i < stop->count; i++) {
		capture_stop(stop->items[i].wait.capture, "stopped", discard);
	}
}

static void fail(struct request *request, enum error_code code, const char *message)
{
	struct error err = {0};
	error_set(&err, code, "%s", message);
	request_fail(request, &err);
}

static void stop_all(struct daemon *daemon, struct request *request, bool discard)
{
	size_t count = captures_running(daemon->captures);
	if (count == 0) {
		request_reply(request, json_pack("{s:[]}", "captures"));
		return;
	}
	struct stop *stop = create(request, count, true);
	if (stop == NULL) {
		fail(request, ERROR_LIMIT_EXCEEDED, "out of memory");
		return;
	}
	struct capture *capture = NULL;
	while (stop->count < count && (capture = captures_next(daemon->captures, capture)) != NULL) {
		add(stop, capture);
	}
	if (stop->count == 0) { /* those that run are being undone */
		answer(stop);
		return;
	}
	begin(stop, discard);
}

/* One that had ended already: it is deleted, which a client that goes meanwhile does not change. */
struct discarding {
	struct request *request; /* NULL: nobody waits any more */
	json_t *record;          /* owned */
};

static void discarded(void *context, const char *left, const struct error *err)
{
	(void)left;
	struct discarding *discarding = context;
	if (discarding->request != NULL && err != NULL) {
		request_fail(discarding->request, err);
	} else if (discarding->request != NULL) {
		mark_discarded(discarding->record);
		request_reply(discarding->request, json_incref(discarding->record));
	}
	json_decref(discarding->record);
	free(discarding);
}

static void discard_ended(struct daemon *daemon, struct request *request, const json_t *record)
{
	struct error err = {0};
	struct discarding *discarding = calloc(1, sizeof(*discarding));
	if (discarding == NULL) {
		fail(request, ERROR_LIMIT_EXCEEDED, "out of memory");
		return;
	}
	*discarding = (struct discarding){request, json_copy((json_t *)record)};
	const char *id = json_string_value(json_object_get(record, "capture_id"));
	if (!captures_delete(daemon->captures, id, discarded, discarding, &err)) {
		json_decref(discarding->record);
		free(discarding);
		request_fail(request, &err);
		return;
	}
	request_forget_when_gone(request, &discarding->request);
}

static void stop_one(struct daemon *daemon, struct request *request, const char *id, bool discard)
{
	struct capture *capture = captures_find(daemon->captures, id);
	json_t *record = capture == NULL ? store_get(daemon->store, id) : NULL;
	if (record != NULL && discard) {
		discard_ended(daemon, request, record);
		return;
	}
	if (record != NULL) {
		request_reply(request, json_incref(record));
		return;
	}
	if (capture == NULL) {
		struct error err = {0};
		error_set(&err, ERROR_CAPTURE_NOT_FOUND, "there is no capture \"%s\"", id);
		request_fail(request, &err);
		return;
	}
	struct stop *stop = create(request, 1, false);
	if (stop == NULL) {
		fail(request, ERROR_LIMIT_EXCEEDED, "out of memory");
		return;
	}
	add(stop, capture);
	begin(stop, discard);
}

static void stop_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	const char *id = command_string(params, "capture_id", NULL);
	bool all = command_boolean(params, "all", false);
	bool discard = command_boolean(params, "discard", false);
	if ((id != NULL) == all) {
		fail(request, ERROR_BAD_PARAMS,
			all ? "StopCapture takes capture_id or all, not both"
				: "StopCapture needs capture_id, or all: true");
		return;
	}
	if (all) {
		stop_all(daemon, request, discard);
	} else {
		stop_one(daemon, request, id, discard);
	}
}

static const struct param params_table[] = {
	{.name = "capture_id",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "The capture; this or all."},
	{.name = "all",
		.type = PARAM_BOOLEAN,
		.fallback = "false",
		.about = "Every capture that runs."},
	{.name = "discard",
		.type = PARAM_BOOLEAN,
		.fallback = "false",
		.about = "Delete everything of it."},
	{.name = NULL},
};

static const char *const errors[] = {"capture_not_found", NULL};

const struct command stop_capture_command = {
	.name = "StopCapture",
	.params = params_table,
	.run = stop_capture,
	.about = "Ends a capture and keeps what was gathered; answers when its artifacts are complete.",
	.result = "the final record, or with all: captures [record]",
	.errors = errors,
	.runs_while_stopping = true,
};
