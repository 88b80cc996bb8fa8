#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A hash table from u64 to u64 with open addressing. Zero is an empty map. Not thread-safe. */
struct map {
	struct map_slot *slots; /* owned */
	size_t len, capacity;   /* capacity: a power of two */
};

struct map_slot {
	uint64_t key, value;
	bool used;
};

void map_finish(struct map *map);
/* A pointer to the value, valid until the next put; NULL when the key is unknown. */
uint64_t *map_get(const struct map *map, uint64_t key);
/* Sets or replaces. False when memory is out. */
bool map_put(struct map *map, uint64_t key, uint64_t value);
/* True when the key was there. */
bool map_remove(struct map *map, uint64_t key);
void map_clear(struct map *map);

/* A good mix of 64 bits, and of bytes (not for hostile keys that must not collide: tables are bounded instead). */
uint64_t map_hash(uint64_t value);
uint64_t map_hash_bytes(const void *bytes, size_t len);

#endif
