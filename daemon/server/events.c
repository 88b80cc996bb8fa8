#include "server/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/names.h"
#include "server/client.h"

enum subject_kind { SUBJECT_BUILD, SUBJECT_CAPTURE };

struct subscription {
	struct client *client;
	enum subject_kind kind;
	char *key; /* owned */
};

struct events {
	struct clients *clients;
	uint64_t next_seq;
	VEC(struct subscription) subscriptions;
};

struct events *events_create(struct clients *clients)
{
	struct events *events = calloc(1, sizeof(*events));
	if (events != NULL) {
		events->clients = clients;
		events->next_seq = 1;
	}
	return events;
}

void events_destroy(struct events *events)
{
	if (events == NULL) {
		return;
	}
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		free(events->subscriptions.items[i].key);
	}
	VEC_FINISH(&events->subscriptions);
	free(events);
}

static const char *key_of(const struct events_subject *subject, enum subject_kind kind)
{
	return kind == SUBJECT_BUILD ? subject->build_key : subject->capture_id;
}

static bool matches(const struct subscription *subscription, const struct events_subject *subject)
{
	const char *key = key_of(subject, subscription->kind);
	return key != NULL && strcmp(key, subscription->key) == 0;
}

/* Takes params; the line, or NULL when it is longer than a line may be or memory is out (logged). */
static char *make_line(
	struct events *events, const char *name, uint64_t seq, json_t *params, size_t *len)
{
	json_object_set_new(params, "seq", json_integer((json_int_t)seq));
	json_t *event =
		json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method", name, "params", params);
	char *line = event != NULL ? message_dump(event, len) : NULL;
	json_decref(event);
	if (line == NULL || *len > LIMIT_LINE_BYTES) {
		log_write(events->clients->log, LOG_ERROR, "server", "event %s dropped: %s", name,
			line == NULL ? "memory is out" : "it is longer than a line may be");
		free(line);
		return NULL;
	}
	return line;
}

/* The slot of a LATEST event in a queue. Owned; NULL when memory is out. */
static char *slot_key(const char *name, const struct events_subject *subject)
{
	char *key = NULL;
	int len =
		asprintf(&key, "%s\n%s\n%s", name, subject->build_key != NULL ? subject->build_key : "",
			subject->capture_id != NULL ? subject->capture_id : "");
	return len < 0 ? NULL : key;
}

static bool has_listener(const struct events *events, const struct events_subject *subject)
{
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		if (matches(&events->subscriptions.items[i], subject)) {
			return true;
		}
	}
	return false;
}

void events_publish(struct events *events, const char *name, enum events_class class,
	const struct events_subject *subject, json_t *params)
{
	uint64_t seq = events->next_seq++;
	if (!has_listener(events, subject)) {
		json_decref(params);
		return;
	}
	size_t len = 0;
	char *line = make_line(events, name, seq, params != NULL ? params : json_object(), &len);
	char *key = class == EVENTS_LATEST ? slot_key(name, subject) : NULL;
	/* Sending changes no subscription: a client that breaks is closed from the loop. */
	for (size_t i = 0; line != NULL && i < events->subscriptions.len; i++) {
		struct subscription *subscription = &events->subscriptions.items[i];
		if (matches(subscription, subject) && (key != NULL || class != EVENTS_LATEST)) {
			client_send_event(subscription->client, seq, class, name, key, line, len);
		}
	}
	free(key);
	free(line);
}

static bool subscribe(
	struct events *events, struct client *client, enum subject_kind kind, const char *key)
{
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		struct subscription *known = &events->subscriptions.items[i];
		if (known->client == client && known->kind == kind && strcmp(known->key, key) == 0) {
			return true;
		}
	}
	struct subscription subscription = {.client = client, .kind = kind, .key = strdup(key)};
	if (subscription.key == NULL || !VEC_PUSH(&events->subscriptions, subscription)) {
		free(subscription.key);
		return false;
	}
	client_count_subscriptions(client, 1);
	return true;
}

bool events_subscribe(
	struct events *events, struct client *client, const struct events_subject *subject)
{
	return (subject->build_key == NULL ||
			   subscribe(events, client, SUBJECT_BUILD, subject->build_key)) &&
		   (subject->capture_id == NULL ||
			   subscribe(events, client, SUBJECT_CAPTURE, subject->capture_id));
}

/* Removes the subscriptions to subject, or all of client when subject is NULL. */
static void unsubscribe(
	struct events *events, struct client *client, const struct events_subject *subject)
{
	size_t kept = 0;
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		struct subscription subscription = events->subscriptions.items[i];
		if (subject != NULL ? matches(&subscription, subject) : subscription.client == client) {
			free(subscription.key);
			client_count_subscriptions(subscription.client, -1);
		} else {
			events->subscriptions.items[kept++] = subscription;
		}
	}
	events->subscriptions.len = kept;
}

void events_forget(struct events *events, const struct events_subject *subject)
{
	unsubscribe(events, NULL, subject);
}

void events_client_gone(struct events *events, struct client *client)
{
	unsubscribe(events, client, NULL);
}

void events_broadcast(struct events *events, const char *name, json_t *params)
{
	uint64_t seq = events->next_seq++;
	size_t len = 0;
	char *line = make_line(events, name, seq, params != NULL ? params : json_object(), &len);
	struct client *client = line != NULL ? events->clients->first : NULL;
	for (; client != NULL; client = client_next(client)) {
		client_send_event(client, seq, EVENTS_LOSSLESS, name, NULL, line, len);
	}
	free(line);
}

json_t *events_dropped(struct events *events, json_t *counts)
{
	return json_pack("{s:s, s:s, s:{s:o, s:I}}", "jsonrpc", "2.0", "method", EVENT_EVENTS_DROPPED,
		"params", "counts", counts, "seq", (json_int_t)events->next_seq++);
}

uint64_t events_next_seq(const struct events *events)
{
	return events->next_seq;
}
