#ifndef CLIENT_PROFCLIENT_H
#define CLIENT_PROFCLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * A connection to profd: requests, replies and events (docs/protocol.md). Blocking, or driven from an event loop by
 * its descriptor: poll profclient_fd for reading, then call profclient_next with timeout 0 until it has nothing. One thread.
 */
struct profclient;

/* Connects to the daemon at path (socket_path_find). The server must run as our user or as root. NULL: err, code io with detail
 * "not_running" when nobody listens. */
struct profclient *profclient_open(const char *path, struct error *err);
void profclient_close(struct profclient *client);
int profclient_fd(const struct profclient *client);

/* Sends a request; takes params (NULL: none). 0: err; otherwise its id. */
int64_t profclient_send(
	struct profclient *client, const char *method, json_t *params, struct error *err);

/* Sends and waits for the reply; events that arrive meanwhile are kept for profclient_next. The result is owned by the caller. NULL: err, the
 * daemon's own error or io with detail "disconnected". Takes params. */
json_t *profclient_call(
	struct profclient *client, const char *method, json_t *params, struct error *err);

enum profclient_result {
	PROFCLIENT_EVENT,   /* *message is an event: {"method", "params"} */
	PROFCLIENT_REPLY,   /* *message is a reply to profclient_send: {"id", "result" or "error"} */
	PROFCLIENT_NOTHING, /* not within timeout_ms */
	PROFCLIENT_FAILED,  /* err; the connection is of no use any more */
};

/* The next event or reply, in the order of arrival. timeout_ms -1: for ever; 0: only what is there. *message is owned by the caller. */
enum profclient_result profclient_next(
	struct profclient *client, int timeout_ms, json_t **message, struct error *err);

/* Members of an event. Borrowed. */
const char *profclient_event_name(const json_t *message);
const json_t *profclient_event_params(const json_t *message);

#endif
