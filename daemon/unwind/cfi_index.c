#include "unwind/cfi_index.h"

#include <stdlib.h>

#include "base/vec.h"

struct index_entry {
	uint64_t begin, at;
};

struct cfi_index {
	VEC(struct index_entry) entries;
};

static int by_begin(const void *left, const void *right)
{
	const struct index_entry *first = left, *second = right;

	if (first->begin != second->begin) {
		return first->begin < second->begin ? -1 : 1;
	}
	return first->at < second->at ? -1 : first->at > second->at;
}

/* A linker that throws code away leaves its FDE in .debug_frame, with an address where no code is. */
static bool add(struct cfi_index *index, const struct cfi_section *section,
	const struct cfi_entry *entry, uint64_t at)
{
	if (entry->begin == entry->end || !image_is_code(section->image, entry->begin)) {
		return true;
	}
	return VEC_PUSH(&index->entries, ((struct index_entry){entry->begin, at}));
}

static bool fill(struct cfi_index *index, const struct cfi_section *section,
	struct image_cache *cache, struct cfi_scratch *scratch)
{
	struct cfi_place place = {0};
	struct cfi_entry entry;
	size_t marks = 0;

	while (marks < CFI_INDEX_MARKS && index->entries.len < CFI_INDEX_ENTRIES &&
		   cfi_entry_place(section, cache, place.next, &place) == CFI_FOUND) {
		marks += place.next - place.at == sizeof(uint32_t);
		if (!place.is_cie &&
			cfi_entry_read(section, cache, place.at, scratch, &entry) == CFI_FOUND &&
			!add(index, section, &entry, place.at)) {
			return false;
		}
	}
	return true;
}

struct cfi_index *cfi_index_create(
	const struct cfi_section *section, struct image_cache *cache, struct cfi_scratch *scratch)
{
	struct cfi_index *index = calloc(1, sizeof(*index));

	if (index == NULL || !fill(index, section, cache, scratch)) {
		cfi_index_destroy(index);
		return NULL;
	}
	if (index->entries.len > 0) {
		qsort(index->entries.items, index->entries.len, sizeof(struct index_entry), by_begin);
	}
	return index;
}

void cfi_index_destroy(struct cfi_index *index)
{
	if (index != NULL) {
		VEC_FINISH(&index->entries);
		free(index);
	}
}

bool cfi_index_find(const struct cfi_index *index, uint64_t pc, uint64_t *at)
{
	size_t low = 0, high = index->entries.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->entries.items[middle].begin <= pc) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low == 0) {
		return false;
	}
	*at = index->entries.items[low - 1].at;
	return true;
}
