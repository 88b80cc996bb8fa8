#include "client/inbox.h"

#include <stdlib.h>

struct inbox_event {
	struct inbox_event *next;
	json_t *message; /* owned */
	size_t bytes;
};

struct inbox_call {
	struct inbox_call *next;
	int64_t id;
	json_t *reply; /* owned; NULL: not yet */
};

void inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){.end = &inbox->first};
}

void inbox_finish(struct inbox *inbox)
{
	for (json_t *event = NULL; (event = inbox_event(inbox)) != NULL;) {
		json_decref(event);
	}
	while (inbox->calls != NULL) {
		inbox_forget(inbox, inbox->calls->id);
	}
}

static struct inbox_call **find(struct inbox *inbox, int64_t id)
{
	struct inbox_call **link = &inbox->calls;
	while (*link != NULL && (*link)->id != id) {
		link = &(*link)->next;
	}
	return link;
}

bool inbox_expect(struct inbox *inbox, int64_t id)
{
	struct inbox_call *call = calloc(1, sizeof(*call));
	if (call != NULL) {
		call->id = id;
		*find(inbox, id) = call;
	}
	return call != NULL;
}

void inbox_forget(struct inbox *inbox, int64_t id)
{
	struct inbox_call **link = find(inbox, id);
	struct inbox_call *call = *link;
	if (call != NULL) {
		*link = call->next;
		json_decref(call->reply);
		free(call);
	}
}

static void add_reply(struct inbox *inbox, json_t *message, const json_t *id)
{
	struct inbox_call *call = inbox->calls;
	if (json_is_integer(id)) {
		call = *find(inbox, json_integer_value(id));
	} else {
		/* An error without an id answers whatever was asked first; before anything was asked it is why we are sent away. */
		while (call != NULL && call->reply != NULL) {
			call = call->next;
		}
		if (call == NULL) {
			error_from_json(&inbox->refusal, json_object_get(message, "error"));
		}
	}
	if (call != NULL && call->reply == NULL) {
		call->reply = json_incref(message);
	}
	json_decref(message);
}

bool inbox_add(
	struct inbox *inbox, json_t *message, size_t text_bytes, size_t max_bytes, struct error *err)
{
	const json_t *id = json_object_get(message, "id");
	if (id != NULL) {
		add_reply(inbox, message, id);
		return true;
	}
	struct inbox_event *event = calloc(1, sizeof(*event));
	if (event == NULL || inbox->event_bytes + text_bytes > max_bytes) {
		free(event);
		json_decref(message);
		error_set(
			err, ERROR_LIMIT_EXCEEDED, "%zu bytes of events were not taken", inbox->event_bytes);
		return error_hint(err, "take events while waiting for replies, or subscribe to fewer");
	}
	*event = (struct inbox_event){.message = message, .bytes = text_bytes};
	inbox->event_bytes += text_bytes;
	*inbox->end = event;
	inbox->end = &event->next;
	return true;
}

enum inbox_reply inbox_reply(struct inbox *inbox, int64_t id, json_t **reply)
{
	struct inbox_call *call = *find(inbox, id);
	if (call == NULL) {
		return INBOX_UNKNOWN;
	}
	if (call->reply == NULL) {
		return INBOX_WAITING;
	}
	*reply = json_incref(call->reply);
	inbox_forget(inbox, id);
	return INBOX_REPLIED;
}

json_t *inbox_event(struct inbox *inbox)
{
	struct inbox_event *event = inbox->first;
	if (event == NULL) {
		return NULL;
	}
	inbox->first = event->next;
	if (inbox->first == NULL) {
		inbox->end = &inbox->first;
	}
	inbox->event_bytes -= event->bytes;
	json_t *message = event->message;
	free(event);
	return message;
}
