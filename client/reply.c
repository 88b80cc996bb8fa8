#include "client/reply.h"
#include "protocol/base64.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *reply_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

json_int_t reply_integer(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

void reply_id(const json_t *id, char *text, size_t size)
{
	if (json_is_integer(id)) {
		snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
	} else {
		snprintf(text, size, "%s", json_is_string(id) ? json_string_value(id) : "");
	}
}

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: they would show what follows in another order than it is. */
static bool turns_text(unsigned code)
{
	return code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
		   (code >= 0x2066 && code <= 0x2069);
}

/* The length of the control character that text begins with, 0 when it begins with none: C0, DEL, C1 (0xc2 0x80 to 0xc2 0x9f), and what changes the direction of text. */
static size_t control_length(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;
	if (bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f) {
		return 2;
	}
	if (bytes[0] == 0xe2 && (bytes[1] & 0xc0) == 0x80 && (bytes[2] & 0xc0) == 0x80 &&
		turns_text(0x2000u | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu))) {
		return 3;
	}
	return bytes[0] < 0x20 || bytes[0] == 0x7f;
}

void reply_print(FILE *out, const char *text, int width)
{
	int columns = 0;
	while (text != NULL && *text != '\0') {
		size_t control = control_length(text);
		fputc(control > 0 ? '?' : *text, out);
		columns += ((unsigned char)*text & 0xc0) != 0x80;
		text += control > 0 ? control : 1;
	}
	for (; columns < width; columns++) {
		fputc(' ', out);
	}
}

void reply_print_time(FILE *out, json_int_t unix_us, int width)
{
	time_t seconds = (time_t)(unix_us / 1000000);
	struct tm local;
	char text[32] = "-";
	if (unix_us > 0 && localtime_r(&seconds, &local) != NULL) {
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
	}
	fprintf(out, "%-*s", width, text);
}

static char *decode(const char *text, size_t text_len, size_t *len)
{
	char *bytes = malloc(text_len / 4 * 3 + 1);
	if (bytes != NULL && !base64_decode(text, text_len, bytes, len)) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

char *reply_bytes(const json_t *object, size_t *len)
{
	const json_t *encoded = json_object_get(object, "data_b64");
	if (json_is_string(encoded)) {
		return decode(json_string_value(encoded), json_string_length(encoded), len);
	}
	const json_t *data = json_object_get(object, "data");
	if (!json_is_string(data)) {
		return NULL;
	}
	size_t length = json_string_length(data);
	char *bytes = malloc(length + 1);
	if (bytes != NULL) {
		memcpy(bytes, json_string_value(data), length + 1);
		*len = length;
	}
	return bytes;
}
