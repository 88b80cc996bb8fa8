#include "protocol/message.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"

/* Dumped reals keep 15 digits: 0.1 is 0.1, and integers up to 10^15 are exact. */
#define DUMP_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15))

/* The byte at which nesting goes beyond the limit, or len. Strings are passed over; what is not JSON is for jansson. */
static size_t too_deep_at(const char *text, size_t len)
{
	size_t depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (in_string) {
			if (c == '\\') {
				i++;
			}
			in_string = c != '"';
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > LIMIT_JSON_DEPTH) {
				return i;
			}
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return len;
}

/* An integer beyond 64 bits becomes a real: too large for whoever wanted an integer, and told by name there. */
static json_t *load(const char *text, size_t len, json_error_t *broken)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
	json_t *value = json_loadb(text, len, flags, broken);
	if (value == NULL && json_error_code(broken) == json_error_numeric_overflow) {
		value = json_loadb(text, len, flags | JSON_DECODE_INT_AS_REAL, broken);
	}
	return value;
}

json_t *message_parse(const char *text, size_t len, struct error *err)
{
	size_t deep = too_deep_at(text, len);
	if (deep < len) {
		error_set(
			err, ERROR_PARSE, "nesting deeper than %d levels at byte %zu", LIMIT_JSON_DEPTH, deep);
		error_detail(err, "too_deep");
		return NULL;
	}
	json_error_t broken;
	json_t *value = load(text, len, &broken);
	if (value == NULL) {
		/* jansson quotes the input after its reason, which may be cut or hold anything. */
		char *quote = strstr(broken.text, " near ");
		if (quote != NULL) {
			*quote = '\0';
		}
		bool is_nul = json_error_code(&broken) == json_error_null_byte_in_key;
		error_set(err, ERROR_PARSE, "not a JSON object: %s at byte %d of %zu",
			is_nul ? "\\u0000 is not allowed in a name" : broken.text, broken.position, len);
	}
	return value;
}

char *message_dump(const json_t *value, size_t *len)
{
	char *text = json_dumps(value, DUMP_FLAGS);
	if (text == NULL) {
		return NULL;
	}
	size_t size = strlen(text);
	char *line = realloc(text, size + 2);
	if (line == NULL) {
		free(text);
		return NULL;
	}
	memcpy(line + size, "\n", 2);
	*len = size + 1;
	return line;
}
