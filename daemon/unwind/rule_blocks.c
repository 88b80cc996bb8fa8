#include "unwind/rule_blocks.h"

#include <stdlib.h>
#include <string.h>

bool rule_blocks_init(struct rule_blocks *blocks)
{
	blocks->slots = calloc(RULE_BLOCK_SLOTS, sizeof(*blocks->slots));
	return blocks->slots != NULL;
}

void rule_blocks_finish(struct rule_blocks *blocks)
{
	free(blocks->slots);
	blocks->slots = NULL;
}

void rule_blocks_clear(struct rule_blocks *blocks)
{
	memset(blocks->slots, 0, RULE_BLOCK_SLOTS * sizeof(*blocks->slots));
}

static struct rule_block *slot_of(const struct rule_blocks *blocks, uint64_t number, size_t probe)
{
	size_t index = (size_t)(number * 0x9e3779b97f4a7c15u >> 40);

	return &blocks->slots[(index + probe) & (RULE_BLOCK_SLOTS - 1)];
}

/* What is free or of an older state goes first; else one that the row itself chooses. */
static struct rule_block *choose(
	struct rule_blocks *blocks, uint64_t number, uint64_t state, uint8_t first)
{
	for (size_t probe = 0; probe < RULE_BLOCK_PROBES; probe++) {
		struct rule_block *slot = slot_of(blocks, number, probe);

		if (slot->state != state || (slot->number == number && slot->first == first)) {
			return slot;
		}
	}
	return slot_of(blocks, number, first % RULE_BLOCK_PROBES);
}

void rule_blocks_put(struct rule_blocks *blocks, uint64_t pc, uint64_t begin, uint64_t end,
	uint64_t state, const struct rule *rule)
{
	uint64_t here = pc / RULE_BLOCK_BYTES, number = begin / RULE_BLOCK_BYTES,
			 last = (end - 1) / RULE_BLOCK_BYTES;

	number = here - number > RULE_BLOCK_SPAN ? here - RULE_BLOCK_SPAN : number;
	last = last - here > RULE_BLOCK_SPAN ? here + RULE_BLOCK_SPAN : last;
	for (; number <= last; number++) {
		uint64_t start = number * RULE_BLOCK_BYTES;
		struct rule_block block = {
			.number = number,
			.state = state,
			.rule = *rule,
			.first = begin > start ? (uint8_t)(begin - start) : 0,
			.last =
				end - start < RULE_BLOCK_BYTES ? (uint8_t)(end - start - 1) : RULE_BLOCK_BYTES - 1,
		};

		*choose(blocks, number, state, block.first) = block;
	}
}

const struct rule *rule_blocks_find(const struct rule_blocks *blocks, uint64_t pc, uint64_t state)
{
	uint64_t number = pc / RULE_BLOCK_BYTES;
	uint8_t at = pc % RULE_BLOCK_BYTES;

	for (size_t probe = 0; probe < RULE_BLOCK_PROBES; probe++) {
		const struct rule_block *slot = slot_of(blocks, number, probe);

		if (slot->number == number && slot->state == state && slot->first <= at &&
			at <= slot->last) {
			return &slot->rule;
		}
	}
	return NULL;
}
