#include "client/profclient.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/connection.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/message.h"

#define READ_BYTES    65536
#define PROCESS_BYTES (1024 * 1024) /* one profclient_process reads at most about so much */
#define UNSENT_BYTES  (16 * 1024 * 1024)
#define KEPT_BYTES    (64 * 1024 * 1024)

static void lose(struct profclient *client, const struct error *err)
{
	if (client->lost.code == ERROR_NONE) {
		client->lost = *err;
	}
}

static void disconnected(struct profclient *client)
{
	struct error err = client->inbox.refusal;
	if (err.code == ERROR_NONE) {
		error_set(&err, ERROR_IO, "the connection to profd has ended");
		error_hint(&err, "look at the daemon's log");
	}
	error_detail(&err, "disconnected");
	lose(client, &err);
}

/* --- sending and receiving without waiting --- */

static void flush(struct profclient *client)
{
	while (client->sent < client->unsent_len && !client->cannot_send) {
		ssize_t count = send(client->fd, client->unsent + client->sent,
			client->unsent_len - client->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (count >= 0) {
			client->sent += (size_t)count;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		} else if (errno != EINTR) {
			client->cannot_send = true;
		}
	}
	client->sent = client->unsent_len = 0;
}

static bool keep_unsent(struct profclient *client, const char *line, size_t len, struct error *err)
{
	size_t waiting = client->unsent_len - client->sent;
	if (waiting + len > UNSENT_BYTES) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "%zu bytes of requests wait for the daemon", waiting);
		return error_hint(err, "call profclient_process when the descriptor can be written");
	}
	if (client->sent > 0) {
		memmove(client->unsent, client->unsent + client->sent, waiting);
		client->sent = 0;
		client->unsent_len = waiting;
	}
	if (waiting + len > client->unsent_size) {
		size_t size = 2 * (waiting + len);
		char *larger = realloc(client->unsent, size);
		if (larger == NULL) {
			return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory for a request");
		}
		client->unsent = larger;
		client->unsent_size = size;
	}
	memcpy(client->unsent + waiting, line, len);
	client->unsent_len = waiting + len;
	return true;
}

/* Cuts what was received into messages. */
static void take_messages(struct profclient *client)
{
	const char *text = NULL;
	size_t len = 0;
	enum framing_result framed = FRAMING_MORE;
	while (client->lost.code == ERROR_NONE &&
		   (framed = framing_next(&client->framing, &text, &len)) == FRAMING_MESSAGE) {
		struct error err = {0};
		json_t *message = message_parse(text, len, &err);
		if (message == NULL) {
			error_wrap(&err, "profd sent what cannot be read");
			lose(client, &err);
		} else if (!inbox_add(&client->inbox, message, len, KEPT_BYTES, &err)) {
			lose(client, &err);
		}
	}
	if (framed != FRAMING_MORE && framed != FRAMING_MESSAGE) {
		struct error err = {0};
		error_set(&err, ERROR_IO, "profd sent a message that is too long or is no JSON line");
		lose(client, &err);
	}
}

/* Reads once. False: there was nothing, or the connection has ended. */
static bool receive(struct profclient *client)
{
	size_t room = 0;
	char *to = framing_reserve(&client->framing, READ_BYTES, &room);
	if (to == NULL) {
		struct error err = {0};
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory for a message");
		lose(client, &err);
		return false;
	}
	ssize_t count = recv(client->fd, to, room, MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
		return false;
	}
	if (count <= 0) {
		disconnected(client);
		return false;
	}
	framing_fed(&client->framing, (size_t)count);
	take_messages(client);
	return true;
}

static bool process(struct profclient *client)
{
	flush(client);
	for (size_t done = 0; client->lost.code == ERROR_NONE && done < PROCESS_BYTES;
		 done += READ_BYTES) {
		if (!receive(client)) {
			break;
		}
	}
	if (client->cannot_send && client->lost.code == ERROR_NONE) {
		disconnected(client); /* whatever it had to say was read above */
	}
	return client->lost.code == ERROR_NONE;
}

/* --- waiting --- */

static uint64_t deadline(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_monotonic_ms() + (uint64_t)timeout_ms;
}

/* Waits until something can be done, and does it. False: the time is over or the connection has ended; what came by then is there. */
static bool wait_and_process(struct profclient *client, uint64_t end)
{
	if (client->lost.code != ERROR_NONE) {
		return false;
	}
	uint64_t now = clock_monotonic_ms();
	int wait_ms = end == UINT64_MAX ? -1 : now < end ? (int)(end - now) : 0;
	struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};
	if (profclient_wants_write(client)) {
		poll_fd.events |= POLLOUT;
	}
	poll(&poll_fd, 1, wait_ms);
	process(client);
	return wait_ms != 0;
}

const json_t *profclient_hello(const struct profclient *client)
{
	return client->hello;
}

int profclient_fd(const struct profclient *client)
{
	return client->fd;
}

bool profclient_wants_write(const struct profclient *client)
{
	return client->sent < client->unsent_len;
}

bool profclient_process(struct profclient *client, struct profclient_error *told)
{
	return process(client) || connection_tell(told, &client->lost);
}

/* --- requests and events --- */

/* The request as a line, owned; NULL: err. Takes params. */
static char *dump(int64_t id, const char *method, json_t *params, size_t *len, struct error *err)
{
	json_t *request =
		json_pack("{s:s, s:I, s:s}", "jsonrpc", "2.0", "id", (json_int_t)id, "method", method);
	bool ok =
		request != NULL && (params == NULL || json_object_set(request, "params", params) == 0);
	char *line = ok ? message_dump(request, len) : NULL;
	json_decref(request);
	json_decref(params);
	if (line == NULL) {
		error_set(err, ERROR_BAD_PARAMS, "the request cannot be written as JSON");
	}
	return line;
}

int64_t profclient_send(
	struct profclient *client, const char *method, json_t *params, struct profclient_error *told)
{
	struct error err = client->lost;
	size_t len = 0;
	if (err.code != ERROR_NONE) {
		json_decref(params);
		connection_tell(told, &err);
		return 0;
	}
	int64_t id = ++client->last_id;
	char *line = dump(id, method, params, &len, &err);
	bool ok = line != NULL && keep_unsent(client, line, len, &err);
	free(line);
	if (ok && !inbox_expect(&client->inbox, id)) {
		client->unsent_len -= len;
		ok = error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory for a request");
	}
	if (!ok) {
		connection_tell(told, &err);
		return 0;
	}
	flush(client);
	return id;
}

/* Takes reply. */
static enum profclient_got unpack(json_t *reply, json_t **result, struct profclient_error *told)
{
	json_t *value = json_incref(json_object_get(reply, "result"));
	struct error err = {0};
	if (value == NULL && !error_from_json(&err, json_object_get(reply, "error"))) {
		error_set(&err, ERROR_INTERNAL, "a reply has neither a result nor an error");
	}
	json_decref(reply);
	if (value == NULL) {
		connection_tell(told, &err);
		return PROFCLIENT_FAILED;
	}
	*result = value;
	return PROFCLIENT_GOT;
}

enum profclient_got profclient_reply(struct profclient *client, int64_t id, int timeout_ms,
	json_t **result, struct profclient_error *told)
{
	uint64_t end = deadline(timeout_ms);
	for (bool goes_on = true;; goes_on = wait_and_process(client, end)) {
		json_t *reply = NULL;
		switch (inbox_reply(&client->inbox, id, &reply)) {
		case INBOX_REPLIED:
			return unpack(reply, result, told);
		case INBOX_UNKNOWN: {
			struct error err = {0};
			error_set(
				&err, ERROR_INVALID_REQUEST, "no reply is expected to request %lld", (long long)id);
			connection_tell(told, &err);
			return PROFCLIENT_FAILED;
		}
		case INBOX_WAITING:
			break;
		}
		if (!goes_on && client->lost.code != ERROR_NONE) {
			connection_tell(told, &client->lost);
			return PROFCLIENT_FAILED;
		}
		if (!goes_on) {
			return PROFCLIENT_NOTHING;
		}
	}
}

void profclient_forget(struct profclient *client, int64_t id)
{
	inbox_forget(&client->inbox, id);
}

json_t *profclient_call(struct profclient *client, const char *method, json_t *params,
	int timeout_ms, struct profclient_error *told)
{
	json_t *result = NULL;
	int64_t id = profclient_send(client, method, params, told);
	if (id == 0) {
		return NULL;
	}
	if (profclient_reply(client, id, timeout_ms, &result, told) == PROFCLIENT_NOTHING) {
		struct error err = {0};
		profclient_forget(client, id);
		error_set(
			&err, ERROR_TIMEOUT, "profd has not answered %s within %d ms", method, timeout_ms);
		error_detail(&err, "no_reply");
		connection_tell(told, &err);
	}
	return result;
}

enum profclient_got profclient_event(
	struct profclient *client, int timeout_ms, json_t **event, struct profclient_error *told)
{
	uint64_t end = deadline(timeout_ms);
	for (bool goes_on = true;; goes_on = wait_and_process(client, end)) {
		json_t *oldest = inbox_event(&client->inbox);
		if (oldest != NULL) {
			*event = oldest;
			return PROFCLIENT_GOT;
		}
		if (!goes_on && client->lost.code != ERROR_NONE) {
			connection_tell(told, &client->lost);
			return PROFCLIENT_FAILED;
		}
		if (!goes_on) {
			return PROFCLIENT_NOTHING;
		}
	}
}

bool profclient_has_event(const struct profclient *client)
{
	return client->inbox.first != NULL;
}

const char *profclient_event_name(const json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "method"));
	return name != NULL ? name : "";
}

const json_t *profclient_event_params(const json_t *event)
{
	return json_object_get(event, "params");
}

const char *profclient_version(void)
{
	return PROFD_VERSION;
}
