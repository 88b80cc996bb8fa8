#ifndef SERVER_CLIENT_H
#define SERVER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <uv.h>

#include "server/events.h"
#include "server/request.h"
#include "server/server.h"

/*
 * The server's inside: one connection each, and what server.c, client.c, request.c and events.c need of each other.
 * Loop thread only. Nothing here calls back into commands, except request_receive (from reading) and the end of a client
 * (from the loop): sending never does, so whoever sends may be in the middle of anything.
 */

/* All connections. Embedded in the server. */
struct clients {
	uv_loop_t *loop;
	const struct log *log;
	struct events *events;
	const struct server_options *options;
	struct client *first;           /* also those that are closing */
	size_t open;                    /* let in and not closing */
	bool draining;                  /* no more requests are read */
	void (*emptied)(void *context); /* the last one's memory is freed; may be NULL */
	void *emptied_context;
};

/* The requests of one client that have no reply yet. */
struct requests {
	struct request *first;
	size_t count;
};

/* Accepts one connection from listener, checks its peer, and reads from it or refuses it with one line. */
void client_accept(struct clients *clients, uv_stream_t *listener);
/* Ends the connection now. The end is told from the loop. Repeated: nothing. */
void client_close(struct client *client);
/* Reads no more and closes once everything queued is sent. */
void client_drain(struct client *client);
void clients_drain(struct clients *clients);
void clients_close(struct clients *clients);
struct client *client_next(const struct client *client);

const struct server_options *client_options(const struct client *client);
struct requests *client_requests(struct client *client);

/* Queues a value as one line, in the order of the calls. False: it is longer than LIMIT_LINE_BYTES (nothing was sent). When memory is out
 * the client is disconnected instead. */
bool client_send(struct client *client, const json_t *message);
/* The error reply to id (borrowed; NULL: null). */
void client_fail(struct client *client, const json_t *id, const struct error *err);
/* As client_send for the text of an event (borrowed), once per seq. key: its slot for EVENTS_LATEST. */
void client_send_event(struct client *client, uint64_t seq, enum events_class class,
	const char *name, const char *key, const char *text, size_t len);
/* After its requests or subscriptions became fewer: a half-closed client may be done. */
void client_settle(struct client *client);
/* The client's subscriptions, counted by events.c. */
void client_count_subscriptions(struct client *client, int change);

/* One line of a client; hands a good request to the server's user and answers a bad one. */
void request_receive(struct client *client, const char *text, size_t len);
/* Answers all that have no reply yet with err; what their handlers say later goes nowhere. */
void requests_refuse(struct client *client, const struct error *err);
/* The client is gone: tells all its requests, which then have no client. */
void requests_gone(struct requests *requests);

struct events *events_create(struct clients *clients);
void events_destroy(struct events *events);
/* The client is gone: its subscriptions go. */
void events_client_gone(struct events *events, struct client *client);
/* An EventsDropped with these counts (taken), for one client. NULL: memory is out. Owned. */
json_t *events_dropped(struct events *events, json_t *counts);

#endif
