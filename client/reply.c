#include "client/reply.h"

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

/* The length of the control character that text begins with, 0 when it begins with none: C0, DEL, and C1 as UTF-8 (0xc2 0x80 to 0xc2 0x9f). */
static size_t control_length(const char *text)
{
	unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
	if (first == 0xc2 && second >= 0x80 && second <= 0x9f) {
		return 2;
	}
	return first < 0x20 || first == 0x7f;
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

static int base64_value(char digit)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = digit != '\0' ? strchr(digits, digit) : NULL;
	return found != NULL ? (int)(found - digits) : -1;
}

/* Four digits as up to three bytes; how many, or 0 when they are no base64. */
static size_t decode_group(const char *group, char *bytes)
{
	int digits = 4;
	while (digits > 2 && group[digits - 1] == '=') {
		digits--;
	}
	unsigned value = 0;
	for (int i = 0; i < 4; i++) {
		int digit = i < digits ? base64_value(group[i]) : 0;
		if (digit < 0) {
			return 0;
		}
		value = value << 6 | (unsigned)digit;
	}
	for (int i = 0; i < digits - 1; i++) {
		bytes[i] = (char)(value >> (16 - 8 * i));
	}
	return (size_t)digits - 1;
}

static char *decode(const char *text, size_t text_len, size_t *len)
{
	char *bytes = text_len % 4 == 0 ? malloc(text_len / 4 * 3 + 1) : NULL;
	size_t used = 0;
	for (size_t at = 0; bytes != NULL && at < text_len; at += 4) {
		size_t count = decode_group(text + at, bytes + used);
		if (count == 0 || (count < 3 && at + 4 < text_len)) {
			free(bytes);
			return NULL;
		}
		used += count;
	}
	*len = used;
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
