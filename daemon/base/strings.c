#include "base/strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct text {
	char *bytes; /* owned, NUL-terminated behind len */
	size_t len;
	uint64_t hash;
};

struct strings {
	VEC(struct text) texts; /* id - 1 */
	uint32_t *slots;        /* owned; ids, 0: empty */
	size_t capacity;        /* a power of two */
};

struct strings *strings_create(void)
{
	return calloc(1, sizeof(struct strings));
}

void strings_destroy(struct strings *strings)
{
	if (strings == NULL) {
		return;
	}
	for (size_t i = 0; i < strings->texts.len; i++) {
		free(strings->texts.items[i].bytes);
	}
	VEC_FINISH(&strings->texts);
	free(strings->slots);
	free(strings);
}

static uint32_t *find(const struct strings *strings, const char *text, size_t len, uint64_t hash)
{
	size_t i = (size_t)hash & (strings->capacity - 1);
	for (; strings->slots[i] != 0; i = (i + 1) & (strings->capacity - 1)) {
		const struct text *known = &strings->texts.items[strings->slots[i] - 1];
		if (known->hash == hash && known->len == len &&
			(len == 0 || memcmp(known->bytes, text, len) == 0)) {
			break;
		}
	}
	return &strings->slots[i];
}

static bool grow(struct strings *strings)
{
	size_t capacity = strings->capacity == 0 ? 64 : strings->capacity * 2;
	uint32_t *slots = calloc(capacity, sizeof(*slots));
	if (slots == NULL) {
		return false;
	}
	free(strings->slots);
	strings->slots = slots;
	strings->capacity = capacity;
	for (size_t i = 0; i < strings->texts.len; i++) {
		size_t at = (size_t)strings->texts.items[i].hash & (capacity - 1);
		while (slots[at] != 0) {
			at = (at + 1) & (capacity - 1);
		}
		slots[at] = (uint32_t)i + 1;
	}
	return true;
}

uint32_t strings_intern(struct strings *strings, const char *text, size_t len, bool *is_new)
{
	if (is_new != NULL) {
		*is_new = false;
	}
	if (strings->texts.len + 1 > strings->capacity / 4 * 3 && !grow(strings)) {
		return 0;
	}
	uint64_t hash = map_hash_bytes(text, len);
	uint32_t *slot = find(strings, text, len, hash);
	if (*slot != 0) {
		return *slot;
	}
	char *copy = strings->texts.len < UINT32_MAX - 1 ? malloc(len + 1) : NULL;
	if (copy == NULL) {
		return 0;
	}
	if (len > 0) {
		memcpy(copy, text, len);
	}
	copy[len] = '\0';
	if (!VEC_PUSH(&strings->texts, ((struct text){copy, len, hash}))) {
		free(copy);
		return 0;
	}
	if (is_new != NULL) {
		*is_new = true;
	}
	return *slot = (uint32_t)strings->texts.len;
}

struct bytes_text strings_text(const struct strings *strings, uint32_t id)
{
	if (id == 0 || id > strings->texts.len) {
		return (struct bytes_text){"", 0};
	}
	const struct text *text = &strings->texts.items[id - 1];
	return (struct bytes_text){text->bytes, text->len};
}

size_t strings_count(const struct strings *strings)
{
	return strings->texts.len;
}
