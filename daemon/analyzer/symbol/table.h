#ifndef ANALYZER_SYMBOL_TABLE_H
#define ANALYZER_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * Which symbol is at an address: ranges, sorted and without overlap. Where symbols lie inside of each other the innermost
 * one has the address; an address between sized symbols has none. Names stay where they are: the owner reads those it needs.
 */
struct table_symbol {
	uint64_t start, end; /* end 0 is unknown: up to the next symbol, and not beyond limit */
	uint64_t limit;
	uint32_t name;   /* the owner's */
	uint8_t strings; /* the owner's: which string table */
	uint8_t rank;    /* of several with the same range the highest is meant */
	bool is_open;    /* set by table_seal: end was unknown */
};

/* Aliases of the highest rank: symbols[first, first + count). */
struct table_range {
	uint64_t start, end;
	uint32_t first, count;
};

struct table {
	VEC(struct table_symbol) symbols;
	VEC(struct table_range) ranges;
};

#define TABLE_MAX_SYMBOLS (8u << 20)
/* Symbols of unknown size below this rank are labels: inside of a sized symbol they are nothing. */
#define TABLE_RANK_FUNCTION 8

void table_finish(struct table *table);
/* Before table_seal. Symbols beyond TABLE_MAX_SYMBOLS are left out. False: memory is out. */
bool table_add(struct table *table, const struct table_symbol *symbol);
/* Sorts; in time near linear, because this stands between a capture's end and its result. */
bool table_seal(struct table *table);
/* After table_seal; NULL: no symbol is there. */
const struct table_range *table_find(const struct table *table, uint64_t address);

#endif
