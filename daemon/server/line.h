#ifndef SERVER_LINE_H
#define SERVER_LINE_H

#include <stddef.h>

#include "server/queue.h"

/* The bytes of one message on their way to a client's queue. Pure; NULL: memory is out. */

/* The message framed by headers. Takes text, a line of *len bytes with its end. Owned (free). */
char *line_with_headers(char *text, size_t *len);

/*
 * A copy of an event's text of *len bytes. When older is not NULL the copy takes its place in the queue, and its number too, so that a
 * connection's numbers rise. Owned (free).
 */
char *line_copy_event(const char *text, size_t *len, const struct queue_line *older);

#endif
