#include "base/map.h"

#include <stdlib.h>
#include <string.h>

void map_finish(struct map *map)
{
	free(map->slots);
	*map = (struct map){0};
}

/* The finaliser of MurmurHash3 (public domain): every input bit reaches every output bit. */
uint64_t map_hash(uint64_t value)
{
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdu;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53u;
	return value ^ value >> 33;
}

uint64_t map_hash_bytes(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t hash = len;
	for (; len >= 8; at += 8, len -= 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		hash = map_hash(hash ^ word);
	}
	uint64_t tail = 0;
	for (size_t i = 0; i < len; i++) {
		tail |= (uint64_t)at[i] << (8 * i);
	}
	return map_hash(hash ^ tail);
}

/* The slot of the key, or the empty slot where it would go. capacity is not 0. */
static struct map_slot *find(const struct map *map, uint64_t key)
{
	size_t mask = map->capacity - 1;
	size_t i = (size_t)map_hash(key) & mask;
	while (map->slots[i].used && map->slots[i].key != key) {
		i = (i + 1) & mask;
	}
	return &map->slots[i];
}

uint64_t *map_get(const struct map *map, uint64_t key)
{
	if (map->capacity == 0) {
		return NULL;
	}
	struct map_slot *slot = find(map, key);
	return slot->used ? &slot->value : NULL;
}

static bool grow(struct map *map)
{
	struct map bigger = {.capacity = map->capacity == 0 ? 16 : map->capacity * 2};
	bigger.slots = calloc(bigger.capacity, sizeof(*bigger.slots));
	if (bigger.slots == NULL) {
		return false;
	}
	for (size_t i = 0; i < map->capacity; i++) {
		if (map->slots[i].used) {
			*find(&bigger, map->slots[i].key) = map->slots[i];
		}
	}
	bigger.len = map->len;
	free(map->slots);
	*map = bigger;
	return true;
}

bool map_put(struct map *map, uint64_t key, uint64_t value)
{
	if (map->len >= map->capacity / 4 * 3 && !grow(map)) {
		return false;
	}
	struct map_slot *slot = find(map, key);
	map->len += slot->used ? 0 : 1;
	*slot = (struct map_slot){key, value, true};
	return true;
}

bool map_remove(struct map *map, uint64_t key)
{
	if (map->capacity == 0) {
		return false;
	}
	struct map_slot *slot = find(map, key);
	if (!slot->used) {
		return false;
	}
	slot->used = false;
	map->len--;
	/* Close the gap: whoever was pushed behind it by a collision moves up. */
	size_t mask = map->capacity - 1;
	size_t i = (size_t)(slot - map->slots);
	for (size_t next = (i + 1) & mask; map->slots[next].used; next = (next + 1) & mask) {
		struct map_slot moved = map->slots[next];
		map->slots[next].used = false;
		*find(map, moved.key) = moved;
	}
	return true;
}

void map_clear(struct map *map)
{
	if (map->capacity > 0) {
		memset(map->slots, 0, map->capacity * sizeof(*map->slots));
	}
	map->len = 0;
}
