#include "image/image_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct page {
	const struct image *image; /* never followed; NULL: free */
	uint64_t born_ns, number, used;
	size_t len; /* less than a page at the end of a file */
};

struct image_cache {
	struct page pages[IMAGE_CACHE_SETS][IMAGE_CACHE_WAYS];
	uint8_t (*bytes)[IMAGE_CACHE_WAYS][IMAGE_CACHE_PAGE_BYTES]; /* owned, one for each page */
	uint64_t now;
	struct page *last; /* read last, and where its bytes are: most reads go on there */
	const uint8_t *last_bytes;
};

struct image_cache *image_cache_create(void)
{
	struct image_cache *cache = calloc(1, sizeof(*cache));

	if (cache == NULL) {
		return NULL;
	}
	cache->bytes = malloc(IMAGE_CACHE_SETS * sizeof(*cache->bytes));
	if (cache->bytes == NULL) {
		image_cache_destroy(cache);
		return NULL;
	}
	return cache;
}

void image_cache_destroy(struct image_cache *cache)
{
	if (cache != NULL) {
		free(cache->bytes);
		free(cache);
	}
}

static bool is_page(
	const struct page *page, const struct image *image, uint64_t born_ns, uint64_t number)
{
	return page->image == image && page->number == number && page->born_ns == born_ns;
}

static struct page *find(
	struct page *set, const struct image *image, uint64_t born_ns, uint64_t number)
{
	for (size_t way = 0; way < IMAGE_CACHE_WAYS; way++) {
		if (is_page(&set[way], image, born_ns, number)) {
			return &set[way];
		}
	}
	return NULL;
}

static struct page *oldest(struct page *set)
{
	struct page *found = &set[0];

	for (size_t way = 1; way < IMAGE_CACHE_WAYS; way++) {
		if (set[way].used < found->used) {
			found = &set[way];
		}
	}
	return found;
}

/* Finds or reads a page; it is the last one then. */
static void turn_to(
	struct image_cache *cache, const struct image *image, uint64_t born_ns, uint64_t number)
{
	size_t index = map_hash((uint64_t)(uintptr_t)image ^ number) & (IMAGE_CACHE_SETS - 1);
	struct page *set = cache->pages[index];
	struct page *page = find(set, image, born_ns, number);

	if (page == NULL) {
		page = oldest(set);
		*page = (struct page){.image = image, .born_ns = born_ns, .number = number};
		page->len = image_source_read(image_source(image), number * IMAGE_CACHE_PAGE_BYTES,
			cache->bytes[index][page - set], IMAGE_CACHE_PAGE_BYTES);
	}
	page->used = ++cache->now;
	cache->last = page;
	cache->last_bytes = cache->bytes[index][page - set];
}

/* The page with its bytes; *len of them are there. */
static const uint8_t *get(
	struct image_cache *cache, const struct image *image, uint64_t number, size_t *len)
{
	uint64_t born_ns = image_born_ns(image);

	if (cache->last == NULL || !is_page(cache->last, image, born_ns, number)) {
		turn_to(cache, image, born_ns, number);
	}
	*len = cache->last->len;
	return cache->last_bytes;
}

static bool read_pages(
	struct image_cache *cache, const struct image *image, uint64_t offset, uint8_t *to, size_t len)
{
	while (len > 0) {
		size_t there, at = (size_t)(offset % IMAGE_CACHE_PAGE_BYTES);
		const uint8_t *bytes = get(cache, image, offset / IMAGE_CACHE_PAGE_BYTES, &there);
		size_t want = IMAGE_CACHE_PAGE_BYTES - at < len ? IMAGE_CACHE_PAGE_BYTES - at : len;

		if (at + want > there) {
			return false;
		}
		memcpy(to, bytes + at, want);
		to += want;
		offset += want;
		len -= want;
	}
	return true;
}

bool image_cache_read(
	struct image_cache *cache, const struct image *image, uint64_t offset, void *to, size_t len)
{
	const struct image_source *source = image_source(image);

	if (offset > source->bytes || len > source->bytes - offset) {
		return false;
	}
	if (source->fd < 0) {
		memcpy(to, source->memory + offset, len);
		return true;
	}
	return read_pages(cache, image, offset, to, len);
}
