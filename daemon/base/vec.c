#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool vec_grow(void *items, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t wanted = *capacity < 8 ? 8 : *capacity;
	while (wanted < need) {
		if (wanted > SIZE_MAX / 2) {
			return false;
		}
		wanted *= 2;
	}
	if (wanted > SIZE_MAX / item_bytes) {
		return false;
	}
	/* Copied, not cast: a T * must not be read through a void **. */
	void *old;
	memcpy(&old, items, sizeof(old));
	void *grown = realloc(old, wanted * item_bytes);
	if (grown == NULL) {
		return false;
	}
	memcpy(items, &grown, sizeof(grown));
	*capacity = wanted;
	return true;
}
