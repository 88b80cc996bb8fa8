#ifndef UNWIND_RULE_CACHE_H
#define UNWIND_RULE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/rule.h"

/*
 * From a program counter to its rule, for the pcs that were seen lately: a hash table of fixed size with open addressing. An entry holds for
 * one state of one process's mappings, which a number that is never used again stands for (unwind/space.h): entries of old states
 * are never found and are overwritten in their turn. One thread's.
 */
#define RULE_CACHE_SLOTS  16384 /* a power of two; 512 KiB */
#define RULE_CACHE_PROBES 4

struct rule_cache_slot {
	uint64_t pc, state; /* state 0: free */
	struct rule rule;
};

struct rule_cache {
	struct rule_cache_slot *slots; /* owned */
};

/* False: memory is out. */
bool rule_cache_init(struct rule_cache *cache);
void rule_cache_finish(struct rule_cache *cache);
void rule_cache_clear(struct rule_cache *cache);

static inline size_t rule_cache_index(uint64_t pc)
{
	/* Fibonacci hashing: neighbouring pcs spread. */
	return (size_t)(pc * 0x9e3779b97f4a7c15u >> 50) & (RULE_CACHE_SLOTS - 1);
}

/* NULL: not there. Valid until the next put. */
static inline const struct rule *rule_cache_find(
	const struct rule_cache *cache, uint64_t pc, uint64_t state)
{
	size_t index = rule_cache_index(pc);

	for (size_t probe = 0; probe < RULE_CACHE_PROBES; probe++) {
		const struct rule_cache_slot *slot =
			&cache->slots[(index + probe) & (RULE_CACHE_SLOTS - 1)];

		if (slot->pc == pc && slot->state == state) {
			return &slot->rule;
		}
	}
	return NULL;
}

/* The place may be taken from another pc. state must not be 0. */
const struct rule *rule_cache_put(
	struct rule_cache *cache, uint64_t pc, uint64_t state, const struct rule *rule);

#endif
