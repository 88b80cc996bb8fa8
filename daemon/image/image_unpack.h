#ifndef IMAGE_IMAGE_UNPACK_H
#define IMAGE_IMAGE_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

#define IMAGE_UNPACK_BYTES        (64 * 1024 * 1024) /* of one part, unpacked */
#define IMAGE_UNPACK_PACKED_BYTES (32 * 1024 * 1024)

/*
 * A packed part's contents: zlib's (RFC 1950) or zstd's (RFC 8878) stream that gives exactly as many bytes as the part says, at most
 * IMAGE_UNPACK_BYTES. Owned (free). NULL: it does not, it is larger, it cannot be read, or memory is out. Any thread; takes milliseconds.
 */
uint8_t *image_unpack(const struct image *image, const struct image_part *part, size_t *len);

#endif
