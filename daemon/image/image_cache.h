#ifndef IMAGE_IMAGE_CACHE_H
#define IMAGE_IMAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

/*
 * Pages of images that were read lately, of one thread: a system call for each of the few bytes that a search looks at would cost more than
 * the search. One cache for all images; memory is touched only as pages are read. It holds no references: pages of an image that is gone are never found
 * again, and thrown out in their turn.
 */
struct image_cache;

#define IMAGE_CACHE_PAGE_BYTES 4096
#define IMAGE_CACHE_WAYS       4
#define IMAGE_CACHE_SETS       64 /* a power of two; with all of it 1 MiB */

/* NULL when memory is out. */
struct image_cache *image_cache_create(void);
void image_cache_destroy(struct image_cache *cache);
/* All of len bytes, or false: they lie behind the end, or cannot be read now. */
bool image_cache_read(
	struct image_cache *cache, const struct image *image, uint64_t offset, void *to, size_t len);

#endif
