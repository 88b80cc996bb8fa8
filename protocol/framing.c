#include "protocol/framing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocol/limits.h"

static const char header[] = "Content-Length:";

/* What an idle connection keeps; a bigger buffer goes back once its line is consumed. */
#define KEPT_BYTES ((size_t)64 * 1024)

void framing_init(struct framing *framing, size_t max_bytes)
{
	*framing = (struct framing){.max_bytes = max_bytes};
}

void framing_finish(struct framing *framing)
{
	free(framing->buffer);
	*framing = (struct framing){.max_bytes = framing->max_bytes};
}

/* Moves the unfinished line to the front, so that room is behind it only. */
static void compact(struct framing *framing)
{
	size_t pending = framing->used - framing->start;
	if (framing->start > 0 && pending > 0) {
		memmove(framing->buffer, framing->buffer + framing->start, pending);
	}
	framing->scanned -= framing->start;
	framing->used = pending;
	framing->start = 0;
	if (pending == 0 && framing->capacity > KEPT_BYTES) {
		free(framing->buffer);
		framing->buffer = NULL;
		framing->capacity = 0;
	}
}

char *framing_reserve(struct framing *framing, size_t want, size_t *room)
{
	compact(framing);
	if (framing->buffer == NULL || framing->capacity - framing->used < want) {
		size_t capacity = framing->capacity;
		if (want > SIZE_MAX / 4 - framing->used) {
			return NULL;
		}
		/* Doubling keeps the copying of one long line linear. */
		capacity = capacity * 2 > framing->used + want ? capacity * 2 : framing->used + want;
		char *buffer = realloc(framing->buffer, capacity > 0 ? capacity : 1);
		if (buffer == NULL) {
			return NULL;
		}
		framing->buffer = buffer;
		framing->capacity = capacity;
	}
	*room = framing->capacity - framing->used;
	return framing->buffer + framing->used;
}

void framing_fed(struct framing *framing, size_t len)
{
	framing->used += len;
}

size_t framing_pending(const struct framing *framing)
{
	return framing->used - framing->start;
}

static bool wants_headers(const struct framing *framing)
{
	return !framing->begun && framing_pending(framing) >= strlen(header) &&
		   strncasecmp(framing->buffer + framing->start, header, strlen(header)) == 0;
}

/* No line end in what is buffered. */
static enum framing_result read_on(struct framing *framing)
{
	framing->scanned = framing->used;
	/* One byte more: it may be the carriage return of a line of exactly max_bytes. */
	if (!framing->skipping && framing_pending(framing) <= framing->max_bytes + 1) {
		return FRAMING_MORE;
	}
	framing->skipping = true;
	framing->begun = true;
	framing->skipped += framing_pending(framing);
	framing->start = framing->used;
	return framing->skipped > LIMIT_SKIPPED_BYTES ? FRAMING_BROKEN : FRAMING_MORE;
}

/* A line of len bytes, its line feed not counted, was passed over or is too long. */
static enum framing_result end_skipped(struct framing *framing, size_t len)
{
	framing->skipped += len;
	if (framing->skipped > LIMIT_SKIPPED_BYTES) {
		framing->skipping = true;
		return FRAMING_BROKEN;
	}
	framing->skipped = 0;
	framing->skipping = false;
	return FRAMING_TOO_LONG;
}

enum framing_result framing_next(struct framing *framing, const char **message, size_t *len)
{
	if (framing->skipped > LIMIT_SKIPPED_BYTES) {
		return FRAMING_BROKEN;
	}
	while (framing->start < framing->used) {
		if (wants_headers(framing)) {
			return FRAMING_HEADERS;
		}
		const char *line = framing->buffer + framing->start;
		const char *end =
			memchr(framing->buffer + framing->scanned, '\n', framing->used - framing->scanned);
		if (end == NULL) {
			return read_on(framing);
		}
		size_t size = (size_t)(end - line);
		framing->start += size + 1;
		framing->scanned = framing->start;
		framing->begun = true;
		if (framing->skipping) {
			return end_skipped(framing, size);
		}
		size_t raw = size;
		if (size > 0 && line[size - 1] == '\r') {
			size--;
		}
		if (size > framing->max_bytes) {
			return end_skipped(framing, raw);
		}
		if (size > 0) {
			*message = line;
			*len = size;
			return FRAMING_MESSAGE;
		}
	}
	return FRAMING_MORE;
}
