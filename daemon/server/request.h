#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include <stdbool.h>

#include <jansson.h>

#include "protocol/error.h"

struct client;

/*
 * One request, from its line to its one reply. The handler owns it until it replies; each of the three
 * functions that end it frees it. The client may go meanwhile: then replies are thrown away.
 */
struct request;

/* Ends it with a result (takes it; NULL means an empty object). A result over LIMIT_LINE_BYTES becomes an internal error. */
void request_reply(struct request *request, json_t *result);
void request_fail(struct request *request, const struct error *err);
/* Ends it without a reply: only for a client that is gone. */
void request_drop(struct request *request);

/* The client that asked; NULL when it is gone. */
struct client *request_client(const struct request *request);

/* gone is called when the client vanishes before the reply (not for a client that only shut its writing side); the handler then ends the request, at once or later. */
void request_on_gone(
	struct request *request, void (*gone)(struct request *request, void *context), void *context);

#endif
