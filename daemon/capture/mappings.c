#include "capture/mappings.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends behind the address. */
static size_t find(const struct mappings *mappings, uint64_t address)
{
	size_t low = 0, high = mappings->ranges.len;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (mappings->ranges.items[middle].end <= address) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* Puts count ranges in the place of those from first to last. There is room. */
static void splice(struct mappings *mappings, size_t first, size_t last,
	const struct mappings_range *ranges, size_t count)
{
	struct mappings_range *items = mappings->ranges.items;
	memmove(items + first + count, items + last, (mappings->ranges.len - last) * sizeof(*items));
	memcpy(items + first, ranges, count * sizeof(*items));
	mappings->ranges.len += count - (last - first);
}

/* The new range, and what is left of those that it covers in part. */
static bool replace(struct mappings *mappings, const struct mappings_range *range)
{
	struct mappings_range parts[3];
	size_t count = 0, first = find(mappings, range->start), last = first;
	bool is_changed = false;
	while (last < mappings->ranges.len && mappings->ranges.items[last].start < range->end) {
		const struct mappings_range *old = &mappings->ranges.items[last++];
		is_changed |= old->image != range->image || old->bias != range->bias;
	}
	if (last > first && mappings->ranges.items[first].start < range->start) {
		parts[count] = mappings->ranges.items[first];
		parts[count++].end = range->start;
	}
	parts[count++] = *range;
	if (last > first && mappings->ranges.items[last - 1].end > range->end) {
		parts[count] = mappings->ranges.items[last - 1];
		parts[count++].start = range->end;
	}
	splice(mappings, first, last, parts, count);
	return is_changed;
}

bool mappings_put(struct mappings *mappings, const struct mappings_range *range)
{
	if (range->end <= range->start) {
		return false;
	}
	if (mappings->ranges.len + 3 > MAPPINGS_MAX ||
		!VEC_RESERVE(&mappings->ranges, mappings->ranges.len + 3)) {
		mappings->ranges.len = 0;
		mappings->is_incomplete = true;
		return true;
	}
	bool is_changed = replace(mappings, range);
	return is_changed || mappings->is_incomplete;
}

bool mappings_find(const struct mappings *mappings, uint64_t address, struct mappings_range *range)
{
	size_t i = find(mappings, address);
	if (i == mappings->ranges.len || mappings->ranges.items[i].start > address) {
		return false;
	}
	*range = mappings->ranges.items[i];
	return true;
}

bool mappings_has(const struct mappings *mappings, uint64_t address)
{
	size_t i = find(mappings, address);
	return mappings->is_incomplete || mappings->ranges.len == 0 ||
		   (i < mappings->ranges.len && mappings->ranges.items[i].start <= address);
}

void mappings_clear(struct mappings *mappings)
{
	mappings->ranges.len = 0;
	mappings->is_incomplete = false;
}

void mappings_finish(struct mappings *mappings)
{
	VEC_FINISH(&mappings->ranges);
}
