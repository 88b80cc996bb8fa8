#include "commands/request_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "protocol/clock.h"
#include "protocol/limits.h"

struct waiting {
	struct key *key;
	struct request *request;
	bool subscribe, subscribe_capture;
	struct waiting *next;
};

struct key {
	struct daemon *daemon;
	const struct command *command;
	char *text; /* owned */
	uint64_t params_hash;
	json_t *result;          /* owned; NULL while the first request has no reply */
	uint64_t expires_ns;     /* once there is a result */
	struct waiting *waiting; /* in the order of arrival */
	struct key *next;        /* the next younger one */
};

static uint64_t hash(const json_t *params)
{
	char *text = json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS);
	uint64_t value = text != NULL ? map_hash_bytes(text, strlen(text)) : 0;
	free(text);
	return value;
}

static void destroy(struct key *key)
{
	json_decref(key->result);
	free(key->text);
	free(key);
}

static void remove_key(struct key *key)
{
	struct key **link = &key->daemon->request_keys;
	while (*link != key) {
		link = &(*link)->next;
	}
	*link = key->next;
	destroy(key);
}

/* Forgets what has expired, and the oldest results when there are too many. */
static void trim(struct daemon *daemon)
{
	uint64_t now = clock_monotonic_ns();
	size_t count = 0;
	for (const struct key *key = daemon->request_keys; key != NULL; key = key->next) {
		count++;
	}
	struct key *next = NULL;
	for (struct key *key = daemon->request_keys; key != NULL; key = next) {
		next = key->next;
		if (key->result != NULL && (key->expires_ns <= now || count >= LIMIT_REQUEST_KEYS)) {
			remove_key(key);
			count--;
		}
	}
}

static struct key *find(
	const struct daemon *daemon, const struct command *command, const char *text)
{
	struct key *key = daemon->request_keys;
	while (key != NULL && (key->command != command || strcmp(key->text, text) != 0)) {
		key = key->next;
	}
	return key;
}

/* As the first one's connection, this one hears of what was created. */
static void subscribe(const struct daemon *daemon, struct client *client, const json_t *result,
	bool build, bool capture)
{
	const json_t *build_id = json_object_get(result, "build_id");
	struct process *process =
		build_id != NULL ? processes_find(daemon->processes, build_id, NULL) : NULL;
	struct events_subject subject = {
		.build_key = build && process != NULL ? process_key(process) : NULL,
		.capture_id = capture ? json_string_value(json_object_get(result, "capture_id")) : NULL,
	};
	if (subject.capture_id != NULL && captures_find(daemon->captures, subject.capture_id) == NULL) {
		subject.capture_id = NULL; /* it has ended: nothing will come */
	}
	if (process != NULL && process_exit(process) != NULL) {
		subject.build_key = NULL;
	}
	events_subscribe(daemon->events, client, &subject);
}

static void answer(struct daemon *daemon, struct request *request, const json_t *result,
	bool subscribe_build, bool subscribe_capture)
{
	struct client *client = request_client(request);
	request_reply(request, json_incref((json_t *)result));
	if (client != NULL) {
		subscribe(daemon, client, result, subscribe_build, subscribe_capture);
	}
}

static void remove_waiting(struct waiting *waiting)
{
	struct waiting **link = &waiting->key->waiting;
	while (*link != waiting) {
		link = &(*link)->next;
	}
	*link = waiting->next;
	free(waiting);
}

static void on_gone(struct request *request, void *context)
{
	remove_waiting(context);
	request_drop(request);
}

static void on_answer(void *context, const json_t *result, const struct error *err)
{
	struct key *key = context;
	struct error dropped = {0};
	if (result == NULL && err == NULL) {
		error_set(&dropped, ERROR_CANCELLED, "the first request with this request_key was ended");
		err = &dropped;
	}
	key->result = json_incref((json_t *)result);
	key->expires_ns = clock_monotonic_ns() + LIMIT_REQUEST_KEY_MS * UINT64_C(1000000);
	while (key->waiting != NULL) {
		struct waiting waiting = *key->waiting;
		remove_waiting(key->waiting);
		if (result != NULL) {
			answer(
				key->daemon, waiting.request, result, waiting.subscribe, waiting.subscribe_capture);
		} else {
			request_fail(waiting.request, err);
		}
	}
	if (result == NULL) {
		remove_key(key);
	}
}

static bool wait(struct key *key, struct request *request, bool build, bool capture)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));
	if (waiting == NULL) {
		return false;
	}
	*waiting = (struct waiting){key, request, build, capture, NULL};
	struct waiting **link = &key->waiting;
	while (*link != NULL) {
		link = &(*link)->next;
	}
	*link = waiting;
	request_on_gone(request, on_gone, waiting);
	request_allow_cancel(request);
	return true;
}

/* Only what subscribes its first connection subscribes a repeated one. */
static bool can_subscribe(const struct command *command)
{
	const struct param *row = command->params;
	while (row != NULL && row->name != NULL && strcmp(row->name, "subscribe") != 0) {
		row++;
	}
	return row != NULL && row->name != NULL;
}

static bool repeat(
	struct daemon *daemon, struct key *key, struct request *request, const json_t *params)
{
	struct error err = {0};
	bool build = can_subscribe(key->command) && command_boolean(params, "subscribe", true);
	bool capture = command_boolean(json_object_get(params, "profile"), "subscribe", build);
	if (key->params_hash != hash(params)) {
		error_set(
			&err, ERROR_BAD_PARAMS, "request_key \"%s\" was used with other parameters", key->text);
		error_detail(&err, "request_key_reused");
		error_hint(&err, "choose a new request_key for a new request");
	} else if (key->result != NULL) {
		answer(daemon, request, key->result, build, capture);
		return true;
	} else if (wait(key, request, build, capture)) {
		return true;
	} else {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
	}
	request_fail(request, &err);
	return true;
}

static bool begin(struct daemon *daemon, struct request *request, const struct command *command,
	const char *text, const json_t *params)
{
	struct key *key = calloc(1, sizeof(*key));
	char *copy = strdup(text);
	if (key == NULL || copy == NULL) {
		free(key);
		free(copy);
		return false;
	}
	*key = (struct key){
		.daemon = daemon,
		.command = command,
		.text = copy,
		.params_hash = hash(params),
	};
	struct key **link = &daemon->request_keys;
	while (*link != NULL) {
		link = &(*link)->next;
	}
	*link = key;
	request_on_answer(request, on_answer, key);
	return true;
}

bool request_keys_take(struct daemon *daemon, struct request *request,
	const struct command *command, const json_t *params)
{
	const char *text = command_string(params, "request_key", NULL);
	if (text == NULL) {
		return false;
	}
	trim(daemon);
	struct key *key = find(daemon, command, text);
	if (key != NULL) {
		return repeat(daemon, key, request, params);
	}
	if (begin(daemon, request, command, text, params)) {
		return false;
	}
	struct error err = {0};
	error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
	request_fail(request, &err);
	return true;
}

void request_keys_finish(struct daemon *daemon)
{
	while (daemon->request_keys != NULL) {
		struct key *key = daemon->request_keys;
		daemon->request_keys = key->next;
		while (key->waiting != NULL) {
			struct request *request = key->waiting->request;
			remove_waiting(key->waiting);
			request_drop(request);
		}
		destroy(key);
	}
}
