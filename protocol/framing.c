#include "protocol/framing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protocol/limits.h"

static const char header[] = "Content-Length:";
static const char endless_line[] = "a line of more than 8 MiB";

_Static_assert(LIMIT_SKIPPED_BYTES == 8 * 1024 * 1024, "the text above");

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

static size_t buffered(const struct framing *framing)
{
	return framing->used - framing->start;
}

size_t framing_pending(const struct framing *framing)
{
	return buffered(framing) + framing->header_bytes;
}

static enum framing_result broken(struct framing *framing, const char *why)
{
	framing->broken = why;
	return FRAMING_BROKEN;
}

static bool wants_headers(const struct framing *framing)
{
	return !framing->begun && buffered(framing) >= strlen(header) &&
		   strncasecmp(framing->buffer + framing->start, header, strlen(header)) == 0;
}

/* No line end in what is buffered. */
static enum framing_result read_on(struct framing *framing)
{
	framing->scanned = framing->used;
	/* One byte more: it may be the carriage return of a line of exactly max_bytes. */
	if (!framing->skipping && buffered(framing) <= framing->max_bytes + 1) {
		return FRAMING_MORE;
	}
	framing->skipping = true;
	framing->begun = true;
	framing->skipped += buffered(framing);
	framing->start = framing->used;
	return framing->skipped > LIMIT_SKIPPED_BYTES ? broken(framing, endless_line) : FRAMING_MORE;
}

/* A line of len bytes, its line feed not counted, was passed over or is too long. */
static enum framing_result end_skipped(struct framing *framing, size_t len)
{
	framing->skipped += len;
	if (framing->skipped > LIMIT_SKIPPED_BYTES) {
		framing->skipping = true;
		return broken(framing, endless_line);
	}
	framing->skipped = 0;
	framing->skipping = false;
	return FRAMING_TOO_LONG;
}

/* A header field's value: digits, with blanks around them. */
static bool parse_length(const char *text, size_t len, size_t *out)
{
	size_t at = 0, value = 0;
	while (at < len && (text[at] == ' ' || text[at] == '\t')) {
		at++;
	}
	size_t first = at;
	for (; at < len && text[at] >= '0' && text[at] <= '9'; at++) {
		if (value > SIZE_MAX / 16) {
			return false;
		}
		value = value * 10 + (size_t)(text[at] - '0');
	}
	bool has_digits = at > first;
	while (at < len && (text[at] == ' ' || text[at] == '\t')) {
		at++;
	}
	*out = value;
	return has_digits && at == len;
}

/* A name of letters, digits and "-", a colon, and anything (RFC 9110, section 5.1, has more characters in names). */
static bool is_field(const char *line, size_t len)
{
	size_t at = 0;
	while (at < len && (line[at] == '-' || (line[at] >= '0' && line[at] <= '9') ||
						   ((line[at] | 0x20) >= 'a' && (line[at] | 0x20) <= 'z'))) {
		at++;
	}
	return at > 0 && at < len && line[at] == ':';
}

/* One header line without its end. NULL: fine; otherwise why the stream is broken. */
static const char *take_header(struct framing *framing, const char *line, size_t len)
{
	size_t name = strlen(header), value = 0;
	if (len < name || strncasecmp(line, header, name) != 0) {
		return is_field(line, len) ? NULL : "a line that is no header field where one should be";
	}
	if (!parse_length(line + name, len - name, &value)) {
		return "a Content-Length that is not a number";
	}
	if (framing->has_length && framing->text_bytes != value) {
		return "two different Content-Length headers of one message";
	}
	framing->has_length = true;
	framing->text_bytes = value;
	return NULL;
}

static enum framing_result end_headers(struct framing *framing)
{
	if (!framing->has_length) {
		return broken(framing, "headers without Content-Length");
	}
	if (framing->text_bytes > LIMIT_SKIPPED_BYTES) {
		return broken(framing, "a Content-Length of more than 8 MiB");
	}
	framing->in_text = true;
	framing->skipping = framing->text_bytes > framing->max_bytes;
	return FRAMING_MORE;
}

/* Reads header lines until the empty one. FRAMING_MORE: more bytes are needed, or in_text. Empty lines before the first field are skipped. */
static enum framing_result read_headers(struct framing *framing)
{
	while (!framing->in_text) {
		const char *line = framing->buffer + framing->start;
		const char *end =
			memchr(framing->buffer + framing->scanned, '\n', framing->used - framing->scanned);
		if (end == NULL) {
			framing->scanned = framing->used;
			return framing_pending(framing) > LIMIT_HEADER_BYTES
					   ? broken(framing, "headers of more than 4096 bytes")
					   : FRAMING_MORE;
		}
		size_t size = (size_t)(end - line);
		framing->start += size + 1;
		framing->scanned = framing->start;
		framing->header_bytes += size + 1;
		if (framing->header_bytes > LIMIT_HEADER_BYTES) {
			return broken(framing, "headers of more than 4096 bytes");
		}
		size -= size > 0 && line[size - 1] == '\r' ? 1 : 0;
		const char *why = size > 0 ? take_header(framing, line, size) : NULL;
		if (why != NULL) {
			return broken(framing, why);
		}
		bool is_between = framing->header_bytes <= 2;
		if (size == 0 && is_between) {
			framing->header_bytes = 0;
		} else if (size == 0 && end_headers(framing) == FRAMING_BROKEN) {
			return FRAMING_BROKEN;
		}
	}
	return FRAMING_MORE;
}

static void end_text(struct framing *framing)
{
	framing->scanned = framing->start;
	framing->in_text = false;
	framing->has_length = false;
	framing->skipping = false;
	framing->header_bytes = 0;
}

static enum framing_result next_with_headers(
	struct framing *framing, const char **message, size_t *len)
{
	if (read_headers(framing) == FRAMING_BROKEN) {
		return FRAMING_BROKEN;
	}
	if (!framing->in_text) {
		return FRAMING_MORE;
	}
	if (framing->skipping) {
		size_t some = buffered(framing);
		some = some < framing->text_bytes ? some : framing->text_bytes;
		framing->text_bytes -= some;
		framing->start += some;
		framing->scanned = framing->start;
		if (framing->text_bytes > 0) {
			return FRAMING_MORE;
		}
		end_text(framing);
		return FRAMING_TOO_LONG;
	}
	if (buffered(framing) < framing->text_bytes) {
		return FRAMING_MORE;
	}
	*message = framing->buffer + framing->start;
	*len = framing->text_bytes;
	framing->start += framing->text_bytes;
	end_text(framing);
	return FRAMING_MESSAGE;
}

enum framing_result framing_next(struct framing *framing, const char **message, size_t *len)
{
	if (framing->broken != NULL) {
		return FRAMING_BROKEN;
	}
	if (wants_headers(framing)) {
		framing->has_headers = true;
		framing->begun = true;
	}
	if (framing->has_headers) {
		return next_with_headers(framing, message, len);
	}
	while (framing->start < framing->used) {
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
