#ifndef PROTOCOL_FRAMING_H
#define PROTOCOL_FRAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/error.h"

/*
 * Cuts a byte stream into messages, see docs/protocol.md, "Transport". Pure: bytes in, messages out; not thread-safe.
 *
 * Lines: one JSON text per line ("\n", also "\r\n"; empty lines are skipped). A line over max_bytes is skipped to its end and reported once
 * as FRAMING_TOO_LONG; the next line is read as if nothing had happened.
 *
 * Headers: when the stream's first bytes are "Content-Length:", in any case, it is read by the base protocol of the Language Server
 * Protocol (specification 3.17, "Base Protocol"; it has the syntax of HTTP header fields):
 *
 *   Content-Length: <bytes of the text> CR LF  [other fields, ignored]  CR LF  <text>
 *
 * A text over max_bytes is skipped and reported as FRAMING_TOO_LONG.
 *
 * FRAMING_BROKEN ends the stream: more than LIMIT_SKIPPED_BYTES would be skipped, or headers that do not say where the next message begins.
 */
struct framing {
	char *buffer;          /* owned */
	size_t capacity, used; /* bytes received and not yet consumed: buffer[start, used) */
	size_t start, scanned; /* scanned: no line end before it */
	size_t skipped;        /* of the over-long line now being skipped */
	size_t max_bytes;
	bool skipping;
	bool begun; /* the first line was seen */

	bool has_headers;
	bool in_text;        /* its headers are read; text_bytes are missing */
	bool has_length;     /* text_bytes was given in these headers */
	size_t header_bytes; /* of these headers, consumed */
	size_t text_bytes;
	const char *broken; /* why the stream ended, for a person; static */
};

enum framing_result {
	FRAMING_MORE,     /* no whole message: feed more */
	FRAMING_MESSAGE,  /* *message, *len: borrowed until the next framing_* call */
	FRAMING_TOO_LONG, /* a message was skipped; go on */
	FRAMING_BROKEN,   /* close the connection: framing->broken says why */
};

void framing_init(struct framing *framing, size_t max_bytes);
void framing_finish(struct framing *framing);

/* Room for at least want bytes to read into; *room >= want. NULL when memory is out. framing_fed says how many came. */
char *framing_reserve(struct framing *framing, size_t want, size_t *room);
void framing_fed(struct framing *framing, size_t len);

/* The next message, until FRAMING_MORE. A message is not NUL-terminated. */
enum framing_result framing_next(struct framing *framing, const char **message, size_t *len);

/* Bytes of an unfinished message that have come: all of a line, headers and text. */
size_t framing_pending(const struct framing *framing);

#endif
