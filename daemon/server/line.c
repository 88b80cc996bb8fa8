#include "server/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *line_with_headers(char *text, size_t *len)
{
	char header[48];
	size_t text_bytes = *len - 1;
	size_t header_bytes =
		(size_t)snprintf(header, sizeof(header), "Content-Length: %zu\r\n\r\n", text_bytes);
	char *framed = realloc(text, header_bytes + text_bytes);
	if (framed == NULL) {
		free(text);
		return NULL;
	}
	memmove(framed + header_bytes, framed, text_bytes);
	memcpy(framed, header, header_bytes);
	*len = header_bytes + text_bytes;
	return framed;
}

/* Where the number stands in an event's text, which ends in "seq":N}} and perhaps a line end (events.c puts seq last). */
static size_t seq_at(const char *text, size_t len, size_t *digits)
{
	size_t end = len - (text[len - 1] == '\n' ? 3 : 2), at = end;
	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9') {
		at--;
	}
	*digits = end - at;
	return at;
}

char *line_copy_event(const char *text, size_t *len, const struct queue_line *older)
{
	size_t digits = 0, older_digits = 0;
	size_t at = seq_at(text, *len, &digits);
	size_t older_at = older != NULL ? seq_at(older->text, older->len, &older_digits) : 0;
	const char *number = older != NULL ? older->text + older_at : text + at;
	size_t number_len = older != NULL ? older_digits : digits;
	size_t rest = *len - at - digits;
	char *copy = malloc(at + number_len + rest);
	if (copy != NULL) {
		memcpy(copy, text, at);
		memcpy(copy + at, number, number_len);
		memcpy(copy + at + number_len, text + at + digits, rest);
		*len = at + number_len + rest;
	}
	return copy;
}
