#ifndef UNWIND_RULE_BLOCKS_H
#define UNWIND_RULE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/rule.h"

/*
 * Rules for whole rows: in a large program most pcs are met once (the innermost ones are anywhere), but in a row of which another pc was seen. A row is
 * kept for each block of code that it covers, in a hash table of fixed size with open addressing. States as in rule_cache.h. One thread's.
 */
#define RULE_BLOCK_BYTES  64
#define RULE_BLOCK_SLOTS  32768 /* a power of two; 1.3 MiB, touched as it is filled */
#define RULE_BLOCK_PROBES 4
#define RULE_BLOCK_SPAN                                                                            \
	16 /* blocks of one row on either side of the pc; what is farther is kept when it is met */

struct rule_block {
	uint64_t number, state; /* state 0: free */
	struct rule rule;
	uint8_t first, last; /* bytes of the block that the row covers, both included */
};

struct rule_blocks {
	struct rule_block *slots; /* owned */
};

/* False: memory is out. */
bool rule_blocks_init(struct rule_blocks *blocks);
void rule_blocks_finish(struct rule_blocks *blocks);
void rule_blocks_clear(struct rule_blocks *blocks);

/* The rule of [begin, end), in which pc lies. state must not be 0. */
void rule_blocks_put(struct rule_blocks *blocks, uint64_t pc, uint64_t begin, uint64_t end,
	uint64_t state, const struct rule *rule);
/* NULL: no row that is known covers it. Valid until the next put. */
const struct rule *rule_blocks_find(const struct rule_blocks *blocks, uint64_t pc, uint64_t state);

#endif
