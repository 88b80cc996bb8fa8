#include "protocol/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

size_t text_decode(const char *bytes, size_t len, uint32_t *code_point)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	if (len == 0) {
		return 0;
	}
	unsigned char lead = (unsigned char)bytes[0];
	size_t size = lead < 0x80   ? 1
				  : lead < 0xc2 ? 0
				  : lead < 0xe0 ? 2
				  : lead < 0xf0 ? 3
				  : lead < 0xf5 ? 4
								: 0;
	if (size == 0 || size > len) {
		return 0;
	}
	uint32_t value = size == 1 ? lead : lead & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		if ((byte & 0xc0) != 0x80) {
			return 0;
		}
		value = value << 6 | (byte & 0x3f);
	}
	if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
		return 0;
	}
	if (code_point != NULL) {
		*code_point = value;
	}
	return size;
}

bool text_is_utf8(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t size = text_decode(bytes + i, len - i, NULL);
		if (size == 0) {
			return false;
		}
		i += size;
	}
	return true;
}

size_t text_cut(const char *bytes, size_t len)
{
	return len - text_incomplete_tail(bytes, len);
}

size_t text_incomplete_tail(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char byte = (unsigned char)bytes[len - back];
		if ((byte & 0xc0) == 0x80) {
			continue;
		}
		size_t size = byte >= 0xf0 && byte < 0xf5 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1;
		return size > back && byte < 0xf5 ? back : 0;
	}
	return 0;
}

char *text_repair(const char *bytes, size_t len, size_t *out_len)
{
	char *out = malloc(len * 3 + 1);
	if (out == NULL) {
		return NULL;
	}
	size_t used = 0;
	for (size_t i = 0; i < len;) {
		size_t size = bytes[i] == '\0' ? 0 : text_decode(bytes + i, len - i, NULL);
		const char *from = size > 0 ? bytes + i : replacement;
		size_t count = size > 0 ? size : 3;
		memcpy(out + used, from, count);
		used += count;
		i += size > 0 ? size : 1;
	}
	out[used] = '\0';
	if (out_len != NULL) {
		*out_len = used;
	}
	return out;
}

char *text_base64(const void *bytes, size_t len)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = bytes;
	char *out = malloc((len + 2) / 3 * 4 + 1);
	if (out == NULL) {
		return NULL;
	}
	char *to = out;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = len - i;
		uint32_t group = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
						 (left > 2 ? in[i + 2] : 0);
		*to++ = alphabet[group >> 18];
		*to++ = alphabet[group >> 12 & 63];
		*to++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
		*to++ = left > 2 ? alphabet[group & 63] : '=';
	}
	*to = '\0';
	return out;
}

json_t *text_json(const char *bytes, size_t len)
{
	if (memchr(bytes, '\0', len) == NULL && text_is_utf8(bytes, len)) {
		return json_stringn(bytes, len);
	}
	size_t repaired_len = 0;
	char *repaired = text_repair(bytes, len, &repaired_len);
	json_t *string = repaired != NULL ? json_stringn(repaired, repaired_len) : NULL;
	free(repaired);
	return string;
}

static bool is_text(const char *bytes, size_t len)
{
	return memchr(bytes, '\0', len) == NULL && text_is_utf8(bytes, len);
}

/* NULL: memory is out. */
static json_t *base64_json(const char *bytes, size_t len)
{
	char *encoded = text_base64(bytes, len);
	json_t *text = encoded != NULL ? json_string(encoded) : NULL;
	free(encoded);
	return text;
}

bool text_set(json_t *object, const char *name, const char *bytes, size_t len)
{
	if (json_object_set_new(object, name, text_json(bytes, len)) != 0) {
		return false;
	}
	if (is_text(bytes, len)) {
		return true;
	}
	char key[64];
	snprintf(key, sizeof(key), "%s_b64", name);
	return json_object_set_new(object, key, base64_json(bytes, len)) == 0;
}

bool text_list_add(struct text_list *list, const char *bytes, size_t len)
{
	list->texts = list->texts != NULL ? list->texts : json_array();
	list->bytes = list->bytes != NULL ? list->bytes : json_array();
	list->is_repaired |= !is_text(bytes, len);
	return json_array_append_new(list->texts, text_json(bytes, len)) == 0 &&
		   json_array_append_new(list->bytes, base64_json(bytes, len)) == 0;
}

bool text_list_set(const struct text_list *list, json_t *object, const char *name)
{
	char key[64];
	snprintf(key, sizeof(key), "%s_b64", name);
	json_t *texts = list->texts != NULL ? json_incref(list->texts) : json_array();
	return json_object_set_new(object, name, texts) == 0 &&
		   (!list->is_repaired || json_object_set(object, key, list->bytes) == 0);
}

void text_list_finish(struct text_list *list)
{
	json_decref(list->texts);
	json_decref(list->bytes);
	*list = (struct text_list){0};
}
