#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "base/log.h"
#include "protocol/error.h"
#include "server/request.h"

/*
 * Listens on a Unix socket, checks peers, and turns lines into requests and replies and events into lines. Knows no method.
 * Loop thread only.
 */
struct server;
struct client;

struct server_options {
	uv_loop_t *loop;
	const char *socket_path; /* not read when there is an activated_fd */
	int activated_fd; /* a listening socket from whoever started us (server/activation.h), taken; 0: one is made */
	const struct log *log;
	/* Called for each well-formed request, in the order of arrival on its connection. params is an object or NULL; borrowed.
	 * The handler answers with request_reply or request_fail, now or later, exactly once. */
	void (*request)(void *context, struct request *request, const char *method, json_t *params);
	/* After a client has gone, before its memory is freed: its requests have been told, its subscriptions removed. */
	void (*client_gone)(void *context, struct client *client);
	void *context;
};

/*
 * Takes the lock (<socket>.lock, for life), makes the socket and listens (server/endpoint.h). When its name is removed while the server
 * lives it is made again within seconds. Errors: limit_exceeded with detail "already_running" (and the pid in the lock), not_permitted
 * (folder), bad_params (the activated socket), io.
 */
struct server *server_open(const struct server_options *options, struct error *err);

/* Accepts no more, flushes what is queued for at most flush_ms, closes the clients, removes the socket when it is still ours; then closed. */
void server_close(struct server *server, uint64_t flush_ms, void (*closed)(void *context));
/* After closed (or when the loop never ran). NULL is fine. */
void server_destroy(struct server *server);

/* Where it listens. */
const char *server_path(const struct server *server);
size_t server_clients(const struct server *server);
struct events *server_events(struct server *server);

#endif
