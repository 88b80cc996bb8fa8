#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/gpu_wire.h"

/* The messages that a stream has, written again one after the other; where it is garbled a mark, and nothing after it. */
struct read_again {
	size_t len;
	char text[64 * 1024];
};

static void add(struct read_again *out, const char *text, size_t len)
{
	if (len > sizeof(out->text) - out->len) {
		abort(); /* an escape takes thrice the bytes only of what was escaped */
	}
	memcpy(out->text + out->len, text, len);
	out->len += len;
}

static void check_number(
	const char *digits, const struct gpu_wire_message *message, const char *key)
{
	uint64_t value = 0;
	char again[32];
	if (gpu_wire_get_number(message, key, &value)) {
		digits += strspn(digits, "0");
		snprintf(again, sizeof(again), "%llu", (unsigned long long)value);
		if (strcmp(again, *digits != '\0' ? digits : "0") != 0) {
			abort();
		}
	}
}

static void write_again(const struct gpu_wire_message *message, struct read_again *out)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, message->word);
	for (size_t i = 0; i < message->count; i++) {
		const struct gpu_wire_pair *pair = &message->pairs[i];
		gpu_wire_text(&line, pair->key, pair->value);
		check_number(pair->value, message, pair->key);
		if (gpu_wire_get(message, pair->key) != pair->value) {
			abort();
		}
	}
	if (!gpu_wire_end(&line)) {
		abort();
	}
	add(out, line.text, line.len);
}

/* False: the stream ends here. */
static bool take(struct gpu_wire_input *input, struct read_again *out)
{
	struct gpu_wire_message message;
	enum gpu_wire_found found;
	while ((found = gpu_wire_next(input, &message)) == GPU_WIRE_MESSAGE) {
		write_again(&message, out);
	}
	if (found == GPU_WIRE_GARBLED) {
		add(out, "!\n", 2);
	}
	return found == GPU_WIRE_NOTHING;
}

static void read_in_pieces(const uint8_t *data, size_t size, size_t piece, struct read_again *out)
{
	struct gpu_wire_input input = {0};
	out->len = 0;
	while (size > 0) {
		size_t room;
		char *to = gpu_wire_room(&input, &room);
		size_t len = size < piece ? size : piece;
		len = len < room ? len : room;
		if (len == 0) {
			abort(); /* there is room as long as nothing is garbled */
		}
		memcpy(to, data, len);
		gpu_wire_filled(&input, len);
		data += len;
		size -= len;
		if (!take(&input, out)) {
			return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte says how the stream is cut. Any cut has the same messages, and so has what is written again from them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct read_again whole, cut, again;
	if (size < 1 || size > 16 * 1024) {
		return 0;
	}
	read_in_pieces(data + 1, size - 1, size, &whole);
	read_in_pieces(data + 1, size - 1, (size_t)data[0] + 1, &cut);
	read_in_pieces((const uint8_t *)whole.text, whole.len, size, &again);
	if (whole.len != cut.len || memcmp(whole.text, cut.text, whole.len) != 0 ||
		whole.len != again.len || memcmp(whole.text, again.text, whole.len) != 0) {
		abort();
	}
	return 0;
}
