#include "image/image_unpack.h"

#include <stdbool.h>
#include <stdlib.h>

#include <zlib.h>
#include <zstd.h>

static bool unpack_zlib(const uint8_t *packed, size_t packed_len, uint8_t *to, size_t len)
{
	uLongf done = len;

	return uncompress(to, &done, packed, packed_len) == Z_OK && done == len;
}

static bool unpack_zstd(const uint8_t *packed, size_t packed_len, uint8_t *to, size_t len)
{
	return ZSTD_decompress(to, len, packed, packed_len) == len;
}

static uint8_t *read_packed(const struct image *image, const struct image_part *part)
{
	uint8_t *packed = malloc((size_t)part->bytes);

	if (packed != NULL && image_source_read(image_source(image), part->offset, packed,
							  (size_t)part->bytes) != part->bytes) {
		free(packed);
		return NULL;
	}
	return packed;
}

uint8_t *image_unpack(const struct image *image, const struct image_part *part, size_t *len)
{
	/* The source's size bounds the first allocation: a part can claim anything. */
	if (part->packing == IMAGE_PACKING_NONE || part->unpacked_bytes == 0 ||
		part->unpacked_bytes > IMAGE_UNPACK_BYTES || part->bytes > IMAGE_UNPACK_PACKED_BYTES ||
		part->bytes == 0 || part->bytes > image_source(image)->bytes) {
		return NULL;
	}
	uint8_t *packed = read_packed(image, part);
	uint8_t *to = packed == NULL ? NULL : malloc((size_t)part->unpacked_bytes);
	size_t want = (size_t)part->unpacked_bytes;
	bool done = to != NULL && (part->packing == IMAGE_PACKING_ZLIB
									  ? unpack_zlib(packed, (size_t)part->bytes, to, want)
									  : unpack_zstd(packed, (size_t)part->bytes, to, want));

	free(packed);
	if (!done) {
		free(to);
		return NULL;
	}
	*len = want;
	return to;
}
