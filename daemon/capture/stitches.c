#include "capture/stitches.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

#define AMBIGUOUS           UINT64_MAX
#define COUNT_BITS          20
#define COUNT_MOST          ((UINT64_C(1) << COUNT_BITS) - 1)
#define PLACE(first, count) ((uint64_t)(first) << COUNT_BITS | (count))

struct stitches {
	struct map places; /* return address → where its callers are in frames, or AMBIGUOUS */
	uint64_t *frames;  /* owned; STITCHES_FRAMES */
	uint8_t *is_exact; /* of the same index */
	uint64_t *sps;     /* of the same index */
	size_t len;
};

struct stitches *stitches_create(void)
{
	struct stitches *stitches = calloc(1, sizeof(*stitches));
	return stitches;
}

void stitches_destroy(struct stitches *stitches)
{
	if (stitches == NULL) {
		return;
	}
	map_finish(&stitches->places);
	free(stitches->frames);
	free(stitches->is_exact);
	free(stitches->sps);
	free(stitches);
}

void stitches_forget(struct stitches *stitches)
{
	map_clear(&stitches->places);
	stitches->len = 0;
}

/* Room for so many more frames. Memory is taken at the first stack. */
static bool has_room(struct stitches *stitches, size_t count)
{
	if (stitches->frames == NULL) {
		stitches->frames = malloc(STITCHES_FRAMES * sizeof(*stitches->frames));
	}
	if (stitches->is_exact == NULL) {
		stitches->is_exact = malloc(STITCHES_FRAMES);
	}
	if (stitches->sps == NULL) {
		stitches->sps = malloc(STITCHES_FRAMES * sizeof(*stitches->sps));
	}
	return stitches->frames != NULL && stitches->is_exact != NULL && stitches->sps != NULL &&
		   count <= COUNT_MOST && stitches->len + count <= STITCHES_FRAMES;
}

static bool is_same(
	const struct stitches *stitches, uint64_t place, const uint64_t *callers, size_t count)
{
	return (place & COUNT_MOST) == count &&
		   memcmp(stitches->frames + (place >> COUNT_BITS), callers, count * sizeof(*callers)) == 0;
}

/*
 * Whether anything about the stack has to be remembered: some frame of it is new. What was known and is contradicted by it becomes
 * ambiguous.
 */
static bool compare(struct stitches *stitches, const uint64_t *frames, size_t count)
{
	bool has_new = false;
	for (size_t i = 0; i < count; i++) {
		uint64_t *place = map_get(&stitches->places, frames[i]);
		if (place == NULL) {
			has_new = true;
		} else if (*place != AMBIGUOUS &&
				   !is_same(stitches, *place, frames + i + 1, count - i - 1)) {
			*place = AMBIGUOUS;
		}
	}
	return has_new;
}

void stitches_learn(struct stitches *stitches, const struct stitches_stack *stack)
{
	const uint64_t *frames = stack->frames;
	size_t count = stack->count;
	if (!compare(stitches, frames, count) || !has_room(stitches, count)) {
		return;
	}
	memcpy(stitches->frames + stitches->len, frames, count * sizeof(*frames));
	memcpy(stitches->is_exact + stitches->len, stack->is_exact, count);
	memcpy(stitches->sps + stitches->len, stack->sps, count * sizeof(*stack->sps));
	/* From the outermost on: of an address that stands twice the second look finds other callers. */
	for (size_t i = count; i-- > 0;) {
		uint64_t *place = map_get(&stitches->places, frames[i]);
		if (place != NULL && *place != AMBIGUOUS &&
			!is_same(stitches, *place, frames + i + 1, count - i - 1)) {
			*place = AMBIGUOUS;
		} else if (place == NULL && stitches->places.len < STITCHES_ENTRIES) {
			map_put(&stitches->places, frames[i], PLACE(stitches->len + i + 1, count - i - 1));
		}
	}
	stitches->len += count;
}

bool stitches_find(const struct stitches *stitches, uint64_t frame, struct stitches_stack *callers)
{
	const uint64_t *place = map_get(&stitches->places, frame);
	if (place == NULL || *place == AMBIGUOUS || (*place & COUNT_MOST) == 0) {
		return false;
	}
	size_t first = (size_t)(*place >> COUNT_BITS);
	*callers = (struct stitches_stack){
		.frames = stitches->frames + first,
		.is_exact = stitches->is_exact + first,
		.sps = stitches->sps + first,
		.count = (size_t)(*place & COUNT_MOST),
	};
	return true;
}
