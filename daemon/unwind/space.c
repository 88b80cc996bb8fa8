#include "unwind/space.h"

#include <stdlib.h>
#include <string.h>

static void change(struct unwind_space *space)
{
	space->state = ++*space->states;
	space->is_shared = false;
}

void unwind_space_init(struct unwind_space *space, uint64_t *states)
{
	*space = (struct unwind_space){.states = states};
	change(space);
}

void unwind_space_clear(struct unwind_space *space)
{
	for (size_t i = 0; i < space->ranges.len; i++) {
		cfi_release(space->ranges.items[i].cfi);
	}
	space->ranges.len = 0;
	change(space);
}

void unwind_space_finish(struct unwind_space *space)
{
	if (space->states != NULL) {
		unwind_space_clear(space);
	}
	VEC_FINISH(&space->ranges);
}

/* The first range that ends behind address. */
static size_t first_behind(const struct unwind_space *space, uint64_t address)
{
	size_t low = 0, high = space->ranges.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->ranges.items[middle].end > address) {
			high = middle;
		} else {
			low = middle + 1;
		}
	}
	return low;
}

const struct unwind_range *unwind_space_find(const struct unwind_space *space, uint64_t address)
{
	size_t index = first_behind(space, address);

	if (index == space->ranges.len || space->ranges.items[index].start > address) {
		return NULL;
	}
	return &space->ranges.items[index];
}

/* The range's reference to its image is the space's from here on. */
static bool insert(struct unwind_space *space, size_t index, const struct unwind_range *range)
{
	if (space->ranges.len == UNWIND_RANGES || !VEC_RESERVE(&space->ranges, space->ranges.len + 1)) {
		return false;
	}
	struct unwind_range *items = space->ranges.items;

	memmove(items + index + 1, items + index, (space->ranges.len - index) * sizeof(*items));
	items[index] = *range;
	space->ranges.len++;
	return true;
}

/* Takes the middle out of one range. */
static bool split(struct unwind_space *space, size_t index, uint64_t start, uint64_t end)
{
	struct unwind_range tail = space->ranges.items[index];

	tail.start = end;
	if (!insert(space, index + 1, &tail)) {
		return false;
	}
	if (tail.cfi != NULL) {
		cfi_hold(tail.cfi);
	}
	space->ranges.items[index].end = start;
	return true;
}

static bool cut(struct unwind_space *space, uint64_t start, uint64_t end)
{
	size_t first = first_behind(space, start), last;

	if (first == space->ranges.len || space->ranges.items[first].start >= end) {
		return true;
	}
	change(space);
	if (space->ranges.items[first].start < start && space->ranges.items[first].end > end) {
		return split(space, first, start, end);
	}
	struct unwind_range *items = space->ranges.items;

	if (items[first].start < start) {
		items[first++].end = start;
	}
	for (last = first; last < space->ranges.len && items[last].end <= end; last++) {
		cfi_release(items[last].cfi);
	}
	if (last < space->ranges.len && items[last].start < end) {
		items[last].start = end;
	}
	if (last > first) {
		memmove(items + first, items + last, (space->ranges.len - last) * sizeof(*items));
		space->ranges.len -= last - first;
	}
	return true;
}

static uint64_t end_of(uint64_t start, uint64_t length)
{
	return length > UINT64_MAX - start ? UINT64_MAX : start + length;
}

bool unwind_space_remove(struct unwind_space *space, uint64_t start, uint64_t length)
{
	return length == 0 || cut(space, start, end_of(start, length));
}

static struct unwind_range range_of(const struct unwind_mapping *mapping)
{
	struct unwind_range range = {
		.start = mapping->start, .end = end_of(mapping->start, mapping->length)};

	if (mapping->cfi != NULL && image_bias(cfi_image(mapping->cfi), mapping->start, mapping->length,
									mapping->file_offset, &range.bias)) {
		range.cfi = mapping->cfi;
	}
	return range;
}

/* Is this what is there already? Then nothing changes: mprotect tells a mapping again. */
static bool is_there(const struct unwind_space *space, const struct unwind_range *range)
{
	const struct unwind_range *old = unwind_space_find(space, range->start);

	return old != NULL && old->end >= range->end && old->cfi == range->cfi &&
		   old->bias == range->bias;
}

bool unwind_space_put(struct unwind_space *space, const struct unwind_mapping *mapping)
{
	struct unwind_range range = range_of(mapping);

	if (mapping->length == 0) {
		return true;
	}
	if (!mapping->is_executable) {
		return cut(space, range.start, range.end);
	}
	if (is_there(space, &range)) {
		return true;
	}
	if (space->is_shared) {
		change(space);
	}
	/* Held before what is there is cut: it may be the last reference. */
	if (range.cfi != NULL) {
		cfi_hold(range.cfi);
	}
	if (!cut(space, range.start, range.end) ||
		!insert(space, first_behind(space, range.start), &range)) {
		cfi_release(range.cfi);
		return false;
	}
	return true;
}

bool unwind_space_copy(struct unwind_space *space, struct unwind_space *from)
{
	if (from->ranges.len == 0) {
		return true;
	}
	if (!VEC_RESERVE(&space->ranges, from->ranges.len)) {
		return false;
	}
	memcpy(space->ranges.items, from->ranges.items, from->ranges.len * sizeof(*from->ranges.items));
	space->ranges.len = from->ranges.len;
	space->state = from->state;
	space->is_shared = from->is_shared = true;
	for (size_t i = 0; i < space->ranges.len; i++) {
		if (space->ranges.items[i].cfi != NULL) {
			cfi_hold(space->ranges.items[i].cfi);
		}
	}
	return true;
}
