#include "client/profclient.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "protocol/framing.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/socket_path.h"

#define READ_BYTES 65536

struct profclient {
	int fd;
	int64_t last_id;
	struct framing framing;
	json_t *kept; /* an array: messages that came while a reply was waited for */
};

struct profclient *profclient_open(const char *path, struct error *err)
{
	struct profclient *client = calloc(1, sizeof(*client));
	if (client == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	framing_init(&client->framing, LIMIT_REQUEST_BYTES);
	client->kept = json_array();
	client->fd = socket_path_connect(path, err);
	if (client->fd < 0) {
		profclient_close(client);
		return NULL;
	}
	return client;
}

void profclient_close(struct profclient *client)
{
	if (client == NULL) {
		return;
	}
	if (client->fd >= 0) {
		close(client->fd);
	}
	framing_finish(&client->framing);
	json_decref(client->kept);
	free(client);
}

int profclient_fd(const struct profclient *client)
{
	return client->fd;
}

static bool disconnected(struct error *err, const char *what)
{
	error_set(err, ERROR_IO, "the connection to profd has ended %s", what);
	error_hint(err, "look at the daemon's log");
	return error_detail(err, "disconnected");
}

static bool send_all(struct profclient *client, const char *bytes, size_t len, struct error *err)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t count = send(client->fd, bytes + sent, len - sent, MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return disconnected(err, "while a request was sent");
		}
		sent += (size_t)count;
	}
	return true;
}

int64_t profclient_send(
	struct profclient *client, const char *method, json_t *params, struct error *err)
{
	int64_t id = ++client->last_id;
	json_t *request =
		json_pack("{s:s, s:I, s:s}", "jsonrpc", "2.0", "id", (json_int_t)id, "method", method);
	if (params != NULL) {
		json_object_set_new(request, "params", params);
	}
	size_t len = 0;
	char *line = message_dump(request, &len);
	json_decref(request);
	if (line == NULL) {
		error_set(err, ERROR_BAD_PARAMS, "the request %s cannot be written as JSON", method);
		return 0;
	}
	bool ok = send_all(client, line, len, err);
	free(line);
	return ok ? id : 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for bytes and reads once. 1: read, 0: nothing in time, -1: err. */
static int read_more(struct profclient *client, int timeout_ms, struct error *err)
{
	struct pollfd poll_fd = {.fd = client->fd, .events = POLLIN};
	int ready = poll(&poll_fd, 1, timeout_ms);
	if (ready == 0 || (ready < 0 && errno == EINTR)) {
		return 0;
	}
	size_t room = 0;
	char *to = framing_reserve(&client->framing, READ_BYTES, &room);
	if (to == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory for a message");
		return -1;
	}
	ssize_t count = recv(client->fd, to, room, 0);
	if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
		return 0;
	}
	if (count <= 0) {
		disconnected(err, "");
		return -1;
	}
	framing_fed(&client->framing, (size_t)count);
	return 1;
}

/* The next message from the wire, not from those kept. */
static enum profclient_result receive(
	struct profclient *client, int timeout_ms, json_t **message, struct error *err)
{
	uint64_t end = timeout_ms > 0 ? now_ms() + (uint64_t)timeout_ms : 0;
	for (;;) {
		const char *text = NULL;
		size_t len = 0;
		enum framing_result framed = framing_next(&client->framing, &text, &len);
		if (framed == FRAMING_MESSAGE) {
			*message = message_parse(text, len, err);
			if (*message == NULL) {
				return PROFCLIENT_FAILED;
			}
			return json_object_get(*message, "id") != NULL ? PROFCLIENT_REPLY : PROFCLIENT_EVENT;
		}
		if (framed != FRAMING_MORE) {
			error_set(err, ERROR_IO, "profd sent a message that is too long or is no JSON line");
			return PROFCLIENT_FAILED;
		}
		int wait_ms = timeout_ms;
		if (timeout_ms > 0) {
			uint64_t now = now_ms();
			wait_ms = now < end ? (int)(end - now) : 0;
		}
		int got = read_more(client, wait_ms, err);
		if (got < 0) {
			return PROFCLIENT_FAILED;
		}
		if (got == 0 && timeout_ms >= 0) {
			return PROFCLIENT_NOTHING;
		}
	}
}

enum profclient_result profclient_next(
	struct profclient *client, int timeout_ms, json_t **message, struct error *err)
{
	if (json_array_size(client->kept) > 0) {
		*message = json_incref(json_array_get(client->kept, 0));
		json_array_remove(client->kept, 0);
		return json_object_get(*message, "id") != NULL ? PROFCLIENT_REPLY : PROFCLIENT_EVENT;
	}
	return receive(client, timeout_ms, message, err);
}

/* The result of a reply, or NULL and the daemon's error. Takes reply. */
static json_t *unpack(json_t *reply, const char *method, struct error *err)
{
	json_t *result = json_incref(json_object_get(reply, "result"));
	if (result == NULL && !error_from_json(err, json_object_get(reply, "error"))) {
		error_set(err, ERROR_INTERNAL, "the reply to %s has neither a result nor an error", method);
	}
	json_decref(reply);
	return result;
}

json_t *profclient_call(
	struct profclient *client, const char *method, json_t *params, struct error *err)
{
	int64_t id = profclient_send(client, method, params, err);
	if (id == 0) {
		return NULL;
	}
	for (;;) {
		json_t *message = NULL;
		enum profclient_result result = receive(client, -1, &message, err);
		if (result == PROFCLIENT_FAILED) {
			return NULL;
		}
		if (result == PROFCLIENT_REPLY) {
			const json_t *answered = json_object_get(message, "id");
			/* An error without an id (a refused connection) is an answer to whatever we do. */
			if (json_is_null(answered) || json_integer_value(answered) == id) {
				return unpack(message, method, err);
			}
		}
		if (message != NULL) {
			json_array_append_new(client->kept, message);
		}
	}
}

const char *profclient_event_name(const json_t *message)
{
	const char *name = json_string_value(json_object_get(message, "method"));
	return name != NULL ? name : "";
}

const json_t *profclient_event_params(const json_t *message)
{
	return json_object_get(message, "params");
}
