#include "protocol/base64.h"

#include <stdint.h>
#include <string.h>

/* The six bits of a character, or -1. */
static int value_of(char character)
{
	return character >= 'A' && character <= 'Z'   ? character - 'A'
		   : character >= 'a' && character <= 'z' ? character - 'a' + 26
		   : character >= '0' && character <= '9' ? character - '0' + 52
		   : character == '+'                     ? 62
		   : character == '/'                     ? 63
												  : -1;
}

/* How many characters of the last four are padding. */
static size_t padding(const char *text, size_t len)
{
	size_t count = 0;
	while (count < 2 && len > count && text[len - 1 - count] == '=') {
		count++;
	}
	return count;
}

bool base64_decode(const char *text, size_t len, char *out, size_t *out_len)
{
	size_t padded = padding(text, len);
	size_t used = 0;
	uint32_t bits = 0;
	if (len % 4 != 0) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		int value = i < len - padded ? value_of(text[i]) : 0;
		if (value < 0) {
			return false;
		}
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 == 3) {
			size_t count = i + 1 == len ? 3 - padded : 3;
			if (count < 3 && (bits & ((1u << (8 * (3 - count))) - 1)) != 0) {
				return false;
			}
			for (size_t byte = 0; byte < count; byte++) {
				out[used++] = (char)(bits >> (16 - 8 * byte));
			}
			bits = 0;
		}
	}
	*out_len = used;
	return true;
}
