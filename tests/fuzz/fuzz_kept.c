/*
 * capture.symbols: bytes behind a header that fits them. What can be read is written again and read to the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "analyzer/symbol/kept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		at[i] = (uint8_t)(value >> 8 * i);
	}
}

static void check_same(const struct kept *a, const struct kept *b)
{
	if (a->images.len != b->images.len) {
		abort();
	}
	for (size_t i = 0; i < a->images.len; i++) {
		const struct kept_image *one = &a->images.items[i], *other = &b->images.items[i];
		if (one->path != other->path || one->state != other->state ||
			one->places.len != other->places.len) {
			abort();
		}
		for (size_t j = 0; j < one->places.len; j++) {
			const struct kept_place *place = &one->places.items[j];
			const struct kept_place *found = kept_place(other, place->offset, place->is_return);
			if (found == NULL || found->name != place->name || found->is_named != place->is_named) {
				abort();
			}
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer file = {0}, again = {0};
	static const uint8_t header[KEPT_HEADER_BYTES] = "PSY1\x01";
	struct strings *strings = strings_create();
	if (strings == NULL || !buffer_append(&file, header, sizeof(header)) ||
		!buffer_append(&file, data, size)) {
		abort();
	}
	put(file.data + 8, size, 8);
	put(file.data + 16, crc32_z(0, data, size), 4);
	struct kept *kept = kept_read(strings, file.data, file.len, NULL);
	if (kept != NULL) {
		if (!kept_write(&again, kept, strings)) {
			abort();
		}
		struct kept *same = kept_read(strings, again.data, again.len, NULL);
		if (same == NULL) {
			abort();
		}
		check_same(kept, same);
		kept_destroy(same);
	}
	kept_destroy(kept);
	strings_destroy(strings);
	buffer_finish(&file);
	buffer_finish(&again);
	return 0;
}
