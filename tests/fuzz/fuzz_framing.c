#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/framing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that comes out, one after the other. */
struct outcome {
	char *text;
	size_t len;
};

static bool collect(struct framing *framing, struct outcome *outcome)
{
	for (;;) {
		const char *message = NULL;
		size_t len = 0;
		enum framing_result result = framing_next(framing, &message, &len);
		if (result == FRAMING_MORE) {
			return true;
		}
		outcome->text[outcome->len++] = (char)result;
		if (result == FRAMING_MESSAGE) {
			memcpy(outcome->text + outcome->len, message, len);
			outcome->len += len;
		} else if (result != FRAMING_TOO_LONG) {
			return false;
		}
	}
}

static struct outcome cut(const uint8_t *data, size_t size, size_t piece)
{
	struct framing framing;
	struct outcome outcome = {.text = malloc(2 * size + 2)};
	framing_init(&framing, 16);
	for (size_t at = 0; at < size; at += piece) {
		size_t room = 0;
		size_t len = piece < size - at ? piece : size - at;
		char *to = framing_reserve(&framing, len, &room);
		if (to == NULL || room < len) {
			abort();
		}
		memcpy(to, data + at, len);
		framing_fed(&framing, len);
		if (!collect(&framing, &outcome)) {
			break;
		}
	}
	framing_finish(&framing);
	return outcome;
}

/* The first byte says how the rest is cut; any cut gives what one piece gives. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2) {
		return 0;
	}
	struct outcome one = cut(data + 1, size - 1, size);
	struct outcome other = cut(data + 1, size - 1, (size_t)data[0] % 23 + 1);
	if (one.len != other.len || memcmp(one.text, other.text, one.len) != 0) {
		abort();
	}
	free(one.text);
	free(other.text);
	return 0;
}
