#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Growing arrays of plain values:
 *
 *   struct { struct mapping *items; size_t len, capacity; } mappings = {0};
 *   if (!VEC_PUSH(&mappings, mapping)) … memory is out, nothing changed
 *   VEC_FINISH(&mappings);
 */
/* items points to the items pointer, of whatever type. */
bool vec_grow(void *items, size_t *capacity, size_t need, size_t item_bytes);

#define VEC(type)                                                                                  \
	struct {                                                                                       \
		type *items;                                                                               \
		size_t len, capacity;                                                                      \
	}
#define VEC_RESERVE(vec, need)                                                                     \
	((need) <= (vec)->capacity ||                                                                  \
		vec_grow(&(vec)->items, &(vec)->capacity, (need), sizeof(*(vec)->items)))
#define VEC_PUSH(vec, value)                                                                       \
	(VEC_RESERVE((vec), (vec)->len + 1) ? ((vec)->items[(vec)->len++] = (value), true) : false)
#define VEC_FINISH(vec)                                                                            \
	(free((vec)->items), (vec)->items = NULL, (vec)->len = 0, (vec)->capacity = 0)

#endif
