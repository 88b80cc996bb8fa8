#include "analyzer/model/space.h"

#include <stdlib.h>
#include <string.h>

void space_finish(struct space *space)
{
	VEC_FINISH(&space->mappings);
}

void space_clear(struct space *space)
{
	space->mappings.len = 0;
}

/* The first mapping that ends behind address. */
static size_t first_behind(const struct space *space, uint64_t address)
{
	size_t low = 0;
	size_t high = space->mappings.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->mappings.items[middle].end > address) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}

static bool insert(struct space *space, size_t index, const struct space_mapping *mapping)
{
	struct space_mapping copy = *mapping;

	if (!VEC_RESERVE(&space->mappings, space->mappings.len + 1)) {
		return false;
	}
	struct space_mapping *items = space->mappings.items;

	memmove(items + index + 1, items + index, (space->mappings.len - index) * sizeof(*items));
	items[index] = copy;
	space->mappings.len++;
	return true;
}

static void cut_front(struct space_mapping *mapping, uint64_t start)
{
	mapping->file_offset += start - mapping->start;
	mapping->start = start;
}

bool space_unmap(struct space *space, uint64_t start, uint64_t end)
{
	size_t first = first_behind(space, start);

	if (start >= end || first == space->mappings.len) {
		return true;
	}
	struct space_mapping *item = &space->mappings.items[first];

	if (item->start < start && item->end > end) {
		struct space_mapping tail = *item;

		cut_front(&tail, end);
		if (!insert(space, first + 1, &tail)) {
			return false;
		}
		space->mappings.items[first].end = start;
		return true;
	}
	if (item->start < start) {
		item->end = start;
		first++;
	}
	struct space_mapping *items = space->mappings.items;
	size_t last = first;

	while (last < space->mappings.len && items[last].end <= end) {
		last++;
	}
	if (last < space->mappings.len && items[last].start < end) {
		cut_front(&items[last], end);
	}
	if (last > first) {
		memmove(items + first, items + last, (space->mappings.len - last) * sizeof(*items));
		space->mappings.len -= last - first;
	}
	return true;
}

bool space_map(struct space *space, const struct space_mapping *mapping)
{
	if (mapping->start >= mapping->end) {
		return true;
	}
	return space_unmap(space, mapping->start, mapping->end) &&
		   insert(space, first_behind(space, mapping->start), mapping);
}

bool space_copy(struct space *space, const struct space *from)
{
	if (!VEC_RESERVE(&space->mappings, from->mappings.len)) {
		return false;
	}
	if (from->mappings.len > 0) {
		memmove(space->mappings.items, from->mappings.items,
			from->mappings.len * sizeof(*from->mappings.items));
	}
	space->mappings.len = from->mappings.len;
	return true;
}

const struct space_mapping *space_find(const struct space *space, uint64_t address)
{
	size_t index = first_behind(space, address);

	if (index == space->mappings.len || space->mappings.items[index].start > address) {
		return NULL;
	}
	return &space->mappings.items[index];
}
