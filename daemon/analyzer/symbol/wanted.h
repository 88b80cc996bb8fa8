#ifndef ANALYZER_SYMBOL_WANTED_H
#define ANALYZER_SYMBOL_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The addresses that will be asked for. A program has hundreds of thousands of symbols and a profile touches hundreds: of a
 * symbol table only those are kept that can matter for one of the addresses, in two walks over it. First every symbol's start is noted,
 * then a symbol is kept when it is the last one to start at or below an address, or covers the address or that last start: what a symbol
 * of unknown size means depends on those around it.
 */
struct wanted {
	uint64_t *addresses; /* owned; sorted, each once */
	uint64_t *before;    /* owned; the highest start at or below the address, once settled */
	size_t len;
	uint32_t
		*buckets; /* owned; first index at or behind the begin of each equal part of the range */
	unsigned shift;
};

/* Takes addresses (malloc'd, in any order). False: memory is out. */
bool wanted_init(struct wanted *wanted, uint64_t *addresses, size_t count);
void wanted_finish(struct wanted *wanted);

void wanted_note_start(struct wanted *wanted, uint64_t start);
/* After the last wanted_note_start. */
void wanted_settle(struct wanted *wanted);
/* end 0: unknown. */
bool wanted_matters(const struct wanted *wanted, uint64_t start, uint64_t end);

#endif
