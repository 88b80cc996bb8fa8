#include "client/reply.h"

const char *reply_string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

json_int_t reply_integer(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

void reply_print(FILE *out, const char *text, int width)
{
	int columns = 0;
	for (; text != NULL && *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;
		fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, out);
		columns += (byte & 0xc0) != 0x80;
	}
	for (; columns < width; columns++) {
		fputc(' ', out);
	}
}
