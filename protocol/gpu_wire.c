#include "protocol/gpu_wire.h"

#include <string.h>

static bool is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		   (c != '\0' && strchr("._/:+,-", c) != NULL);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* One byte is left for the line end. */
static void put(struct gpu_wire_line *line, const char *text, size_t len)
{
	if (line->is_full || len >= sizeof(line->text) - line->len) {
		line->is_full = true;
		return;
	}
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

void gpu_wire_begin(struct gpu_wire_line *line, const char *word)
{
	line->len = 0;
	line->is_full = false;
	put(line, word, strlen(word));
}

static void put_key(struct gpu_wire_line *line, const char *key)
{
	put(line, " ", 1);
	put(line, key, strlen(key));
	put(line, "=", 1);
}

void gpu_wire_text(struct gpu_wire_line *line, const char *key, const char *value)
{
	static const char digits[] = "0123456789ABCDEF";
	put_key(line, key);
	for (; *value != '\0'; value++) {
		unsigned char byte = (unsigned char)*value;
		char escaped[3] = {'%', digits[byte >> 4], digits[byte & 15]};
		put(line, is_plain(*value) ? value : escaped, is_plain(*value) ? 1 : 3);
	}
}

void gpu_wire_number(struct gpu_wire_line *line, const char *key, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	put_key(line, key);
	put(line, digits + at, sizeof(digits) - at);
}

bool gpu_wire_end(struct gpu_wire_line *line)
{
	if (line->is_full) {
		return false;
	}
	line->text[line->len++] = '\n';
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'A' && c <= 'F') {
		return c - 'A' + 10;
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes the escapes of a value in place; NULL when it is none. The value ends at a space or NUL; *end becomes that place. */
static const char *unescape(char *value, char **end)
{
	char *out = value, *in = value;
	while (*in != ' ' && *in != '\0') {
		if (*in == '%') {
			int high = hex_digit(in[1]), low = high < 0 ? -1 : hex_digit(in[2]);
			if (low < 0 || (high == 0 && low == 0)) {
				return NULL;
			}
			*out++ = (char)(high << 4 | low);
			in += 3;
		} else if (is_plain(*in)) {
			*out++ = *in++;
		} else {
			return NULL;
		}
	}
	*end = in;
	if (out < in) {
		*out = '\0';
	}
	return value;
}

static char *skip_name(char *at)
{
	while (is_name(*at)) {
		at++;
	}
	return at;
}

/* Takes " key=value" at *at, and puts *at behind it. */
static bool take_pair(char **at, struct gpu_wire_message *message)
{
	char *key = *at, *equals = skip_name(key), *end;
	if (equals == key || *equals != '=' || message->count == GPU_WIRE_PAIRS) {
		return false;
	}
	*equals = '\0';
	const char *value = unescape(equals + 1, &end);
	if (value == NULL || gpu_wire_get(message, key) != NULL) {
		return false;
	}
	message->pairs[message->count++] = (struct gpu_wire_pair){key, value};
	*at = end;
	return true;
}

bool gpu_wire_parse(char *text, size_t len, struct gpu_wire_message *message)
{
	memset(message, 0, sizeof(*message));
	if (memchr(text, '\0', len) != NULL) {
		return false;
	}
	text[len] = '\0';
	message->word = text;
	char *at = skip_name(text);
	if (at == text) {
		return false;
	}
	while (*at == ' ') {
		*at++ = '\0';
		if (!take_pair(&at, message)) {
			return false;
		}
	}
	return at == text + len;
}

const char *gpu_wire_get(const struct gpu_wire_message *message, const char *key)
{
	for (size_t i = 0; i < message->count; i++) {
		if (strcmp(message->pairs[i].key, key) == 0) {
			return message->pairs[i].value;
		}
	}
	return NULL;
}

bool gpu_wire_get_number(const struct gpu_wire_message *message, const char *key, uint64_t *out)
{
	const char *digits = gpu_wire_get(message, key);
	uint64_t value = 0;
	if (digits == NULL || *digits == '\0') {
		return false;
	}
	for (; *digits != '\0'; digits++) {
		if (*digits < '0' || *digits > '9' || value > UINT64_MAX / 10 ||
			value * 10 > UINT64_MAX - (uint64_t)(*digits - '0')) {
			return false;
		}
		value = value * 10 + (uint64_t)(*digits - '0');
	}
	*out = value;
	return true;
}

char *gpu_wire_room(struct gpu_wire_input *input, size_t *room)
{
	memmove(input->text, input->text + input->begin, input->end - input->begin);
	input->end -= input->begin;
	input->begin = 0;
	*room = sizeof(input->text) - input->end;
	return input->text + input->end;
}

void gpu_wire_filled(struct gpu_wire_input *input, size_t count)
{
	input->end += count;
}

enum gpu_wire_found gpu_wire_next(struct gpu_wire_input *input, struct gpu_wire_message *message)
{
	char *line = input->text + input->begin;
	size_t len = input->end - input->begin;
	char *end = memchr(line, '\n', len);
	if (end == NULL) {
		return len == sizeof(input->text) ? GPU_WIRE_GARBLED : GPU_WIRE_NOTHING;
	}
	input->begin += (size_t)(end - line) + 1;
	return gpu_wire_parse(line, (size_t)(end - line), message) ? GPU_WIRE_MESSAGE
															   : GPU_WIRE_GARBLED;
}
