#ifndef COMMANDS_OUTPUT_TEXT_H
#define COMMANDS_OUTPUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/*
 * Cuts the bytes of one stream of a program into the pieces of ProcessOutput: at most LIMIT_OUTPUT_EVENT_BYTES each, characters whole.
 * A character whose rest has not come yet waits for it. Zero is the start of a stream. Pure.
 */
struct output_text {
	uint64_t offset; /* of the first waiting byte in the stream */
	size_t waiting;  /* 0 to 3 */
	char bytes[4];
};

/* One piece: its text as "data", or as "data_b64" when it is not UTF-8 or holds NUL. piece is owned by the callee. */
typedef void (*output_text_fn)(void *context, uint64_t offset, json_t *piece);

/* The next bytes of the stream; piece is called for what is whole. */
void output_text_feed(struct output_text *output, uint64_t offset, const char *bytes, size_t len,
	output_text_fn piece, void *context);

/* The stream has ended: what waits is told too. */
void output_text_end(struct output_text *output, output_text_fn piece, void *context);

/*
 * One answer's worth of a stream: {"data"} or {"data_b64"} of the first *used of these bytes, at most max_escaped bytes as a JSON string in ASCII. A
 * character is never cut: what begins at the end waits for its rest, unless nothing else would be left of more. is_end: nothing will follow these
 * bytes; is_cut: more is there already. Pure. Owned; NULL when memory is out.
 */
json_t *output_text_answer(
	const char *bytes, size_t len, bool is_end, bool is_cut, size_t max_escaped, size_t *used);

#endif
