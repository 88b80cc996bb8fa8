#ifndef ANALYZER_SYMBOL_SOURCE_H
#define ANALYZER_SYMBOL_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "analyzer/symbol/table.h"

/* Where a table's names come from: an ELF file, /proc/kallsyms, later JIT maps. */
struct source_ops {
	const char *name;
	/* Copies a symbol's name (as the linker knows it, not NUL-terminated) to room bytes; its length, 0: unreadable. */
	size_t (*read_name)(void *self, const struct table_symbol *symbol, char *name, size_t room);
	/* Frees self. Called once. */
	void (*destroy)(void *self);
};

/* Of a range's aliases the one to show: without leading underscores, then short, then first by its bytes. Appends nothing to an
 * unreadable name; returns its length. */
size_t source_best_name(const struct source_ops *ops, void *self, const struct table *table,
	const struct table_range *range, char *name, char *scratch, size_t room);

#endif
