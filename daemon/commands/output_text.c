#include "commands/output_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "protocol/text.h"

static json_t *encode(const char *bytes, size_t len)
{
	if (text_is_utf8(bytes, len) && memchr(bytes, '\0', len) == NULL) {
		return json_pack("{s:o}", "data", json_stringn_nocheck(bytes, len));
	}
	char *base64 = text_base64(bytes, len);
	json_t *piece = base64 == NULL ? NULL : json_pack("{s:s}", "data_b64", base64);
	free(base64);
	return piece;
}

static void tell(
	uint64_t offset, const char *bytes, size_t len, output_text_fn piece, void *context)
{
	json_t *encoded = encode(bytes, len);
	if (encoded != NULL) {
		piece(context, offset, encoded);
	}
}

/* Completes the waiting character from the front of the new bytes; returns how many were used. */
static size_t complete(
	struct output_text *output, const char *bytes, size_t len, output_text_fn piece, void *context)
{
	size_t used = 0;
	while (output->waiting > 0 && used < len) {
		bool continues = (bytes[used] & 0xc0) == 0x80;
		if (continues) {
			output->bytes[output->waiting++] = bytes[used++];
		}
		if (!continues || text_incomplete_tail(output->bytes, output->waiting) != output->waiting) {
			output_text_end(output, piece, context);
		}
	}
	return used;
}

void output_text_feed(struct output_text *output, uint64_t offset, const char *bytes, size_t len,
	output_text_fn piece, void *context)
{
	size_t pos = complete(output, bytes, len, piece, context);
	if (output->waiting > 0) {
		return;
	}
	size_t end = len - text_incomplete_tail(bytes + pos, len - pos);
	while (pos < end) {
		size_t count = end - pos;
		if (count > LIMIT_OUTPUT_EVENT_BYTES) {
			size_t cut = text_cut(bytes + pos, LIMIT_OUTPUT_EVENT_BYTES);
			count = cut == 0 ? LIMIT_OUTPUT_EVENT_BYTES : cut;
		}
		tell(offset + pos, bytes + pos, count, piece, context);
		pos += count;
	}
	output->offset = offset + pos;
	output->waiting = len - pos;
	memcpy(output->bytes, bytes + pos, len - pos);
}

void output_text_end(struct output_text *output, output_text_fn piece, void *context)
{
	if (output->waiting > 0) {
		tell(output->offset, output->bytes, output->waiting, piece, context);
		output->waiting = 0;
	}
}

/* What jansson makes of one character with JSON_ENSURE_ASCII. */
static size_t escaped_bytes(uint32_t code_point)
{
	static const char short_ones[] = "\"\\\b\f\n\r\t";
	if (code_point < 0x80 && strchr(short_ones, (int)code_point) != NULL) {
		return 2;
	}
	if (code_point >= ' ' && code_point < 0x80) {
		return 1;
	}
	return code_point > 0xffff ? 12 : 6;
}

/* How many bytes of valid UTF-8 fit. */
static size_t fitting(const char *bytes, size_t len, size_t max_escaped)
{
	size_t pos = 0, escaped = 0;
	while (pos < len) {
		uint32_t code_point = 0;
		size_t count = text_decode(bytes + pos, len - pos, &code_point);
		escaped += escaped_bytes(code_point);
		if (escaped > max_escaped) {
			break;
		}
		pos += count;
	}
	return pos;
}

json_t *output_text_answer(
	const char *bytes, size_t len, bool is_end, bool is_cut, size_t max_escaped, size_t *used)
{
	size_t tail = is_end ? 0 : text_incomplete_tail(bytes, len);
	bool is_all = tail == len && is_cut;
	size_t whole = is_all ? len : len - tail;
	if (text_is_utf8(bytes, whole)) {
		whole = fitting(bytes, whole, max_escaped);
	}
	*used = whole;
	return encode(bytes, whole);
}
