#include "server/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/names.h"
#include "server/client.h"
#include "server/history.h"

struct subscription {
	struct client *client;
	uint64_t id;      /* 0: implied, by launching or starting something */
	char *build_key;  /* owned */
	char *capture_id; /* owned; neither: everything */
	char **names;     /* owned, NULL-terminated; NULL: all */
};

struct events {
	struct clients *clients;
	uint64_t next_seq;
	uint64_t next_id;
	VEC(struct subscription) subscriptions;
	struct history history;
};

struct events *events_create(struct clients *clients)
{
	struct events *events = calloc(1, sizeof(*events));
	if (events != NULL) {
		events->clients = clients;
		events->next_seq = 1;
		events->next_id = 1;
	}
	return events;
}

static void finish(struct subscription *subscription)
{
	for (size_t i = 0; subscription->names != NULL && subscription->names[i] != NULL; i++) {
		free(subscription->names[i]);
	}
	free(subscription->names);
	free(subscription->build_key);
	free(subscription->capture_id);
}

void events_destroy(struct events *events)
{
	if (events == NULL) {
		return;
	}
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		finish(&events->subscriptions.items[i]);
	}
	VEC_FINISH(&events->subscriptions);
	history_finish(&events->history);
	free(events);
}

static bool is_named(char *const *names, const char *name)
{
	size_t i = 0;
	while (names != NULL && names[i] != NULL && strcmp(names[i], name) != 0) {
		i++;
	}
	return names == NULL || names[i] != NULL;
}

static bool is_same(const char *wanted, const char *key)
{
	return wanted != NULL && key != NULL && strcmp(wanted, key) == 0;
}

static bool is_about(
	const struct subscription *subscription, const char *build_key, const char *capture_id)
{
	return (subscription->build_key == NULL && subscription->capture_id == NULL) ||
		   is_same(subscription->build_key, build_key) ||
		   is_same(subscription->capture_id, capture_id);
}

static bool matches(
	const struct subscription *subscription, const char *name, const struct events_subject *subject)
{
	return is_named(subscription->names, name) &&
		   is_about(subscription, subject->build_key, subject->capture_id);
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

static bool has_listener(
	const struct events *events, const char *name, const struct events_subject *subject)
{
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		if (matches(&events->subscriptions.items[i], name, subject)) {
			return true;
		}
	}
	return false;
}

static void keep(struct events *events, uint64_t seq, const char *name,
	const struct events_subject *subject, char *line, size_t len)
{
	struct history_event event = {
		.seq = seq,
		.name = name,
		.build_key = (char *)subject->build_key,
		.capture_id = (char *)subject->capture_id,
		.line = line,
		.len = len,
	};
	history_add(&events->history, &event);
}

void events_publish(struct events *events, const char *name, enum events_class class,
	const struct events_subject *subject, json_t *params)
{
	uint64_t seq = events->next_seq++;
	if (class != EVENTS_LOSSLESS && !has_listener(events, name, subject)) {
		json_decref(params);
		return;
	}
	size_t len = 0;
	char *line = make_line(events, name, seq, params != NULL ? params : json_object(), &len);
	char *key = class == EVENTS_LATEST ? slot_key(name, subject) : NULL;
	if (line != NULL && class == EVENTS_LOSSLESS) {
		keep(events, seq, name, subject, line, len);
	}
	/* Sending changes no subscription: a client that breaks is closed from the loop. */
	for (size_t i = 0; line != NULL && i < events->subscriptions.len; i++) {
		struct subscription *subscription = &events->subscriptions.items[i];
		if (matches(subscription, name, subject) && (key != NULL || class != EVENTS_LATEST)) {
			client_send_event(subscription->client, seq, class, name, key, line, len);
		}
	}
	free(key);
	free(line);
}

/* --- implied subscriptions --- */

static bool is_implied(
	const struct subscription *subscription, const char *build_key, const char *capture_id)
{
	return subscription->id == 0 && (is_same(subscription->build_key, build_key) ||
										is_same(subscription->capture_id, capture_id));
}

static bool imply(
	struct events *events, struct client *client, const char *build_key, const char *capture_id)
{
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		struct subscription *known = &events->subscriptions.items[i];
		if (known->client == client && is_implied(known, build_key, capture_id)) {
			return true;
		}
	}
	struct subscription subscription = {
		.client = client,
		.build_key = build_key != NULL ? strdup(build_key) : NULL,
		.capture_id = capture_id != NULL ? strdup(capture_id) : NULL,
	};
	if ((subscription.build_key == NULL && subscription.capture_id == NULL) ||
		!VEC_PUSH(&events->subscriptions, subscription)) {
		finish(&subscription);
		return false;
	}
	client_count_subscriptions(client, capture_id != NULL);
	return true;
}

bool events_subscribe(
	struct events *events, struct client *client, const struct events_subject *subject)
{
	return (subject->build_key == NULL || imply(events, client, subject->build_key, NULL)) &&
		   (subject->capture_id == NULL || imply(events, client, NULL, subject->capture_id));
}

bool events_pass_on(struct events *events, const char *build_key, const char *capture_id)
{
	size_t count = events->subscriptions.len; /* those that are added are to the capture */
	for (size_t i = 0; i < count; i++) {
		const struct subscription *known = &events->subscriptions.items[i];
		if (is_implied(known, build_key, NULL) && !imply(events, known->client, NULL, capture_id)) {
			return false;
		}
	}
	return true;
}

/* Removes those for which must_go is true. */
static void remove_where(struct events *events,
	bool (*must_go)(const struct subscription *subscription, const void *what), const void *what)
{
	size_t kept = 0;
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		struct subscription subscription = events->subscriptions.items[i];
		if (must_go(&subscription, what)) {
			bool keeps_open = subscription.id == 0 && subscription.capture_id != NULL;
			finish(&subscription);
			if (keeps_open) {
				client_count_subscriptions(subscription.client, -1);
			}
		} else {
			events->subscriptions.items[kept++] = subscription;
		}
	}
	events->subscriptions.len = kept;
}

static bool is_implied_by(const struct subscription *subscription, const void *what)
{
	const struct events_subject *subject = what;
	return is_implied(subscription, subject->build_key, subject->capture_id);
}

void events_forget(struct events *events, const struct events_subject *subject)
{
	remove_where(events, is_implied_by, subject);
}

static bool is_of_client(const struct subscription *subscription, const void *what)
{
	return subscription->client == what;
}

void events_client_gone(struct events *events, struct client *client)
{
	remove_where(events, is_of_client, client);
}

/* --- Subscribe --- */

static struct subscription *find(
	const struct events *events, const struct client *client, uint64_t id)
{
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		struct subscription *subscription = &events->subscriptions.items[i];
		if (subscription->client == client && subscription->id == id && id != 0) {
			return subscription;
		}
	}
	return NULL;
}

static size_t count(const struct events *events, const struct client *client)
{
	size_t found = 0;
	for (size_t i = 0; i < events->subscriptions.len; i++) {
		const struct subscription *subscription = &events->subscriptions.items[i];
		found += subscription->client == client && subscription->id != 0;
	}
	return found;
}

static bool copy_text(const char *text, char **out)
{
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

static bool copy_names(const char *const *names, char ***out)
{
	size_t len = 0;
	while (names != NULL && names[len] != NULL) {
		len++;
	}
	*out = names != NULL ? calloc(len + 1, sizeof(**out)) : NULL;
	bool ok = names == NULL || *out != NULL;
	for (size_t i = 0; ok && i < len; i++) {
		ok = copy_text(names[i], &(*out)[i]);
	}
	return ok;
}

uint64_t events_add(struct events *events, struct client *client,
	const struct events_filter *filter, struct error *err)
{
	if (count(events, client) >= LIMIT_SUBSCRIPTIONS) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "this connection has %d subscriptions already",
			LIMIT_SUBSCRIPTIONS);
		error_detail(err, "subscriptions");
		error_hint(err, "end one of them with Unsubscribe");
		return 0;
	}
	struct subscription subscription = {.client = client, .id = events->next_id};
	if (!copy_text(filter->build_key, &subscription.build_key) ||
		!copy_text(filter->capture_id, &subscription.capture_id) ||
		!copy_names(filter->names, &subscription.names) ||
		!VEC_PUSH(&events->subscriptions, subscription)) {
		finish(&subscription);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a subscription");
		return 0;
	}
	return events->next_id++;
}

bool events_get(const struct events *events, const struct client *client, uint64_t id,
	struct events_filter *filter)
{
	const struct subscription *subscription = find(events, client, id);
	if (subscription == NULL) {
		return false;
	}
	*filter = (struct events_filter){
		.names = (const char *const *)subscription->names,
		.build_key = subscription->build_key,
		.capture_id = subscription->capture_id,
	};
	return true;
}

bool events_remove(struct events *events, struct client *client, uint64_t id)
{
	struct subscription *subscription = find(events, client, id);
	if (subscription == NULL) {
		return false;
	}
	finish(subscription);
	size_t index = (size_t)(subscription - events->subscriptions.items);
	size_t behind = events->subscriptions.len - index - 1;
	memmove(subscription, subscription + 1, behind * sizeof(*subscription));
	events->subscriptions.len--;
	return true;
}

bool events_reach(const struct events *events, uint64_t since_seq)
{
	return history_reaches(&events->history, since_seq);
}

void events_replay(struct events *events, struct client *client, uint64_t id, uint64_t since_seq)
{
	const struct subscription *subscription = find(events, client, id);
	const struct history_event *event = NULL;
	for (size_t i = 0; subscription != NULL && (event = history_at(&events->history, i)) != NULL;
		 i++) {
		struct events_subject subject = {event->build_key, event->capture_id};
		if (event->seq > since_seq && matches(subscription, event->name, &subject)) {
			client_send_event(
				client, event->seq, EVENTS_LOSSLESS, event->name, NULL, event->line, event->len);
		}
	}
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
