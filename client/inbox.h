#ifndef CLIENT_INBOX_H
#define CLIENT_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "protocol/error.h"

/* What a connection has received and nobody has taken yet, and which requests wait for a reply. Zero is empty. */
struct inbox_event;
struct inbox_call;

struct inbox {
	struct inbox_event *first, **end; /* oldest first */
	size_t event_bytes;               /* of their texts */
	struct inbox_call *calls;         /* oldest first */
	struct error
		refusal; /* an error without an id, when no request waited: why the connection ends */
};

void inbox_init(struct inbox *inbox);
void inbox_finish(struct inbox *inbox);

/* A request was sent. False: memory is out. */
bool inbox_expect(struct inbox *inbox, int64_t id);
/* Its reply is not wanted any more. */
void inbox_forget(struct inbox *inbox, int64_t id);

/* Takes a message of text_bytes. Replies that nobody expects are dropped. False: err is limit_exceeded (memory, or more than max_bytes of events). */
bool inbox_add(
	struct inbox *inbox, json_t *message, size_t text_bytes, size_t max_bytes, struct error *err);

enum inbox_reply {
	INBOX_UNKNOWN, /* no such request */
	INBOX_WAITING,
	INBOX_REPLIED,
};

/* REPLIED: *reply is the message, owned by the caller; the request is done with. */
enum inbox_reply inbox_reply(struct inbox *inbox, int64_t id, json_t **reply);

/* The oldest event, owned by the caller; NULL when there is none. */
json_t *inbox_event(struct inbox *inbox);

#endif
