#ifndef PROTOCOL_FRAMING_H
#define PROTOCOL_FRAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/error.h"

/*
 * Cuts a byte stream into messages: one JSON text per line ("\n", also "\r\n"; empty lines are skipped), see
 * docs/protocol.md, "Transport". Header framing (the Language Server Protocol's base protocol) is chosen by a
 * first line that begins with "Content-Length:" and answers unsupported until it is built. Pure: bytes in, messages out; not thread-safe.
 *
 * A line over max_bytes is skipped to its end and reported once as FRAMING_TOO_LONG; the next line is read as if
 * nothing had happened. FRAMING_BROKEN ends the stream (over LIMIT_SKIPPED_BYTES without a line end).
 */
struct framing {
	char *buffer;          /* owned */
	size_t capacity, used; /* bytes received and not yet consumed: buffer[start, used) */
	size_t start, scanned; /* scanned: no line end before it */
	size_t skipped;        /* of the over-long line now being skipped */
	size_t max_bytes;
	bool skipping;
	bool begun; /* the first line was seen */
};

enum framing_result {
	FRAMING_MORE,     /* no whole message: feed more */
	FRAMING_MESSAGE,  /* *message, *len: borrowed until the next framing_* call */
	FRAMING_TOO_LONG, /* a line was skipped; go on */
	FRAMING_HEADERS,  /* the client wants header framing */
	FRAMING_BROKEN,   /* close the connection */
};

void framing_init(struct framing *framing, size_t max_bytes);
void framing_finish(struct framing *framing);

/* Room for at least want bytes to read into; *room >= want. NULL when memory is out. framing_fed says how many came. */
char *framing_reserve(struct framing *framing, size_t want, size_t *room);
void framing_fed(struct framing *framing, size_t len);

/* The next message, until FRAMING_MORE. A message is not NUL-terminated. */
enum framing_result framing_next(struct framing *framing, const char **message, size_t *len);

/* Bytes of an unfinished line that are kept. */
size_t framing_pending(const struct framing *framing);

#endif
