#ifndef SERVER_QUEUE_H
#define SERVER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "server/events.h"

/*
 * The lines that wait for one client: one first-in, first-out queue, so that whatever was said first arrives first,
 * with bounds by class (events.h). Pure; zero is an empty queue.
 *
 * LATEST lines with the key of one that still waits take its place in the queue and its bytes go. DROPPABLE lines (and
 * new LATEST ones) are refused when events beyond LIMIT_QUEUE_EVENT_BYTES would wait, and counted by name; from
 * then on all of them are, until half of that room is free again: so a reader that is too slow gets long pieces with
 * few holes, each told by one EventsDropped, instead of a hole after every line.
 */
struct queue_line {
	struct queue_line *next;
	char *text; /* owned */
	size_t len;
	enum events_class class;
	char *key; /* of a LATEST line; owned */
};

struct queue {
	struct queue_line *first, *last;
	size_t lossless_bytes; /* replies and state changes */
	size_t event_bytes;    /* the other two classes */
	size_t latest_lines;
	json_t
		*dropped; /* {name: count}, NULL when nothing was dropped since it was last told; owned */
};

enum queue_result {
	QUEUE_KEPT,
	QUEUE_DROPPED, /* refused and counted */
	QUEUE_FULL, /* a line that must not be lost has no room, or memory is out: disconnect the client */
};

void queue_finish(struct queue *queue);

/* Takes text (malloc), whatever the result. name is the event's, key that of its slot (LATEST); both borrowed, NULL for replies. */
enum queue_result queue_put(struct queue *queue, enum events_class class, const char *name,
	const char *key, char *text, size_t len);

/* The line that waits in this slot, borrowed; NULL: none. */
const struct queue_line *queue_slot(const struct queue *queue, const char *key);

/* The oldest line, no longer in the queue; NULL when it is empty. Owned. */
struct queue_line *queue_take(struct queue *queue);
void queue_line_destroy(struct queue_line *line);

bool queue_is_empty(const struct queue *queue);

/* The counts of what was dropped, once there is room again and until the next drop; otherwise NULL. Owned. */
json_t *queue_take_dropped(struct queue *queue);

#endif
