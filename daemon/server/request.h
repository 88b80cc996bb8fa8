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

/* For work that goes on then and has nobody to answer: *slot, where the handler keeps the request, becomes NULL, and the request ends. */
void request_forget_when_gone(struct request *request, struct request **slot);

/* Its gone handler ends it at once and undoes nothing but the waiting: so a client may end it too, with Cancel. */
void request_allow_cancel(struct request *request);
/* Ends the request with this id of this client as if the client had gone; it is answered with cancelled. False: there is none that can be ended. */
bool request_cancel(struct client *client, const json_t *id);

/* answered is called with the result, or with err, when it has ended, also when its client is gone; with neither when it was dropped. Borrowed. */
void request_on_answer(struct request *request,
	void (*answered)(void *context, const json_t *result, const struct error *err), void *context);

#endif
