#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "commands/captures.h"
#include "commands/methods.h"
#include "commands/page.h"
#include "commands/params.h"
#include "protocol/limits.h"
#include "store/capture_id.h"

/* WaitCapture. Freed when its timer has closed, whichever way it ended. */
struct waiter {
	struct request *request; /* NULL once it was answered */
	struct capture_wait wait;
	uv_timer_t timer;
	uint64_t timeout_ms;
	char capture_id[LIMIT_ID_BYTES + 1];
};

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Ends the waiting; the request is the caller's to end. */
static struct request *end(struct waiter *waiter)
{
	struct request *request = waiter->request;
	waiter->request = NULL;
	capture_unwait(&waiter->wait);
	uv_close((uv_handle_t *)&waiter->timer, on_timer_closed);
	return request;
}

static void on_ended(struct capture_wait *wait, const json_t *record)
{
	struct waiter *waiter = wait->context;
	if (record != NULL) {
		request_reply(end(waiter), json_incref((json_t *)record));
		return;
	}
	struct error err = {0};
	error_set(&err, ERROR_CANCELLED, "capture %s was discarded", waiter->capture_id);
	request_fail(end(waiter), &err);
}

static void on_timeout(uv_timer_t *timer)
{
	struct waiter *waiter = timer->data;
	struct error err = {0};
	error_set(&err, ERROR_TIMEOUT, "capture %s has not ended within %" PRIu64 " ms",
		waiter->capture_id, waiter->timeout_ms);
	request_fail(end(waiter), &err);
}

static void on_gone(struct request *request, void *context)
{
	end(context);
	request_drop(request);
}

static struct waiter *create(struct daemon *daemon, struct request *request, const char *id)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	if (waiter == NULL) {
		return NULL;
	}
	uv_timer_init(daemon->loop, &waiter->timer);
	waiter->timer.data = waiter;
	waiter->request = request;
	waiter->wait = (struct capture_wait){.ended = on_ended, .context = waiter};
	snprintf(waiter->capture_id, sizeof(waiter->capture_id), "%s", id);
	return waiter;
}

static void wait_running(
	struct daemon *daemon, struct request *request, struct capture *capture, const json_t *params)
{
	struct waiter *waiter = create(daemon, request, capture_id(capture));
	if (waiter == NULL) {
		struct error err = {0};
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
		request_fail(request, &err);
		return;
	}
	if (json_object_get(params, "timeout_ms") != NULL) {
		waiter->timeout_ms = (uint64_t)command_integer(params, "timeout_ms", 0);
		uv_timer_start(&waiter->timer, on_timeout, waiter->timeout_ms, 0);
	}
	capture_wait(capture, &waiter->wait);
	request_on_gone(request, on_gone, waiter);
	request_allow_cancel(request);
}

static void get_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	json_t *record = captures_record(daemon, command_string(params, "capture_id", ""), &err);
	if (record == NULL) {
		request_fail(request, &err);
	} else {
		request_reply(request, record);
	}
}

static void wait_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct capture *capture =
		captures_find(daemon->captures, command_string(params, "capture_id", ""));
	if (capture == NULL) {
		get_capture(daemon, request, params);
	} else {
		wait_running(daemon, request, capture, params);
	}
}

/* Does the record have what is asked for? What is left out matches everything. */
static bool is_wanted(const json_t *record, const json_t *params)
{
	static const char *const same[] = {"state", "label", "pinned"};
	char wanted[LIMIT_ID_BYTES + 1], key[LIMIT_ID_BYTES + 1];
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		const json_t *value = json_object_get(params, same[i]);
		if (value != NULL && !json_equal(value, json_object_get(record, same[i]))) {
			return false;
		}
	}
	return !processes_key(json_object_get(params, "build_id"), wanted) ||
		   (processes_key(json_object_get(record, "build_id"), key) && strcmp(key, wanted) == 0);
}

static void list_captures(struct daemon *daemon, struct request *request, const json_t *params)
{
	const char *cursor = command_string(params, "cursor", NULL);
	uint64_t unix_us = 0;
	struct error err = {0};
	if (cursor != NULL && !capture_id_parse(cursor, &unix_us)) {
		params_refuse(
			&err, "cursor", json_object_get(params, "cursor"), "next_cursor of the page before");
		request_fail(request, &err);
		return;
	}
	char last[LIMIT_ID_BYTES + 1];
	snprintf(last, sizeof(last), "%s", cursor != NULL ? cursor : "");
	struct page page;
	page_init(&page, LIMIT_ID_BYTES);
	json_t *kept = NULL;
	while ((kept = store_next(daemon->store, last)) != NULL) {
		const char *id = json_string_value(json_object_get(kept, "capture_id"));
		json_t *record = id != NULL ? captures_record(daemon, id, NULL) : NULL;
		if (record == NULL) {
			break;
		}
		if (!is_wanted(record, params)) {
			json_decref(record);
		} else if (!page_add(&page, record)) {
			break;
		}
		snprintf(last, sizeof(last), "%s", id);
	}
	request_reply(request, page_finish(&page, "captures", last));
}

#define CAPTURE_ID_PARAM                                                                           \
	{                                                                                              \
		.name = "capture_id", .type = PARAM_STRING, .required = true, .min = 1,                    \
		.max = LIMIT_ID_BYTES, .about = "The capture."                                             \
	}

static const struct param get_params[] = {
	CAPTURE_ID_PARAM,
	{.name = NULL},
};

static const struct param wait_params[] = {
	CAPTURE_ID_PARAM,
	{.name = "timeout_ms",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_DURATION_MS,
		.about = "How long to wait; left out: until it ends."},
	{.name = NULL},
};

static const char *const states[] = {
	"armed", "sampling", "symbolizing", "writing", "finished", "failed", NULL};

static const struct param list_params[] = {
	{.name = "state", .type = PARAM_ENUM, .choices = states, .about = "Only those in this state."},
	{.name = "build_id", .type = PARAM_ID, .about = "Only those of builds of this name."},
	{.name = "label",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_LABEL_BYTES,
		.about = "Only those with this label."},
	{.name = "pinned", .type = PARAM_BOOLEAN, .about = "Only those that are pinned, or are not."},
	{.name = "cursor",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "next_cursor of the page before."},
	{.name = NULL},
};

static const char *const get_errors[] = {"capture_not_found", NULL};
static const char *const wait_errors[] = {"capture_not_found", "timeout", "cancelled", NULL};

#define RECORD "one record: what the terminal event carried, and pinned, started_unix_us, state"

const struct command wait_capture_command = {
	.name = "WaitCapture",
	.params = wait_params,
	.run = wait_capture,
	.about = "Answers when a capture has ended and its artifacts are complete.",
	.result = RECORD,
	.errors = wait_errors,
	.runs_while_stopping = true,
};

const struct command list_captures_command = {
	.name = "ListCaptures",
	.params = list_params,
	.run = list_captures,
	.about = "The captures that run and those that are kept, oldest first.",
	.result = "captures [record], next_cursor?",
	.runs_while_stopping = true,
};

const struct command get_capture_command = {
	.name = "GetCapture",
	.params = get_params,
	.run = get_capture,
	.about = "One capture as it is now.",
	.result = RECORD,
	.errors = get_errors,
	.runs_while_stopping = true,
};
