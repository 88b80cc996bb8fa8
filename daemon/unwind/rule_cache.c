#include "unwind/rule_cache.h"

#include <stdlib.h>
#include <string.h>

bool rule_cache_init(struct rule_cache *cache)
{
	cache->slots = calloc(RULE_CACHE_SLOTS, sizeof(*cache->slots));
	return cache->slots != NULL;
}

void rule_cache_finish(struct rule_cache *cache)
{
	free(cache->slots);
	cache->slots = NULL;
}

void rule_cache_clear(struct rule_cache *cache)
{
	memset(cache->slots, 0, RULE_CACHE_SLOTS * sizeof(*cache->slots));
}

/* A slot of an older state than the new entry's goes first; of entries as good, one that the pc itself chooses. */
static struct rule_cache_slot *choose(struct rule_cache *cache, uint64_t pc, uint64_t state)
{
	size_t index = rule_cache_index(pc);

	for (size_t probe = 0; probe < RULE_CACHE_PROBES; probe++) {
		struct rule_cache_slot *slot = &cache->slots[(index + probe) & (RULE_CACHE_SLOTS - 1)];

		if (slot->state != state) {
			return slot;
		}
	}
	return &cache->slots[(index + (pc >> 4) % RULE_CACHE_PROBES) & (RULE_CACHE_SLOTS - 1)];
}

const struct rule *rule_cache_put(
	struct rule_cache *cache, uint64_t pc, uint64_t state, const struct rule *rule)
{
	struct rule_cache_slot *slot = choose(cache, pc, state);

	*slot = (struct rule_cache_slot){.pc = pc, .state = state, .rule = *rule};
	return &slot->rule;
}
