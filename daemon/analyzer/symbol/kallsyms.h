#ifndef ANALYZER_SYMBOL_KALLSYMS_H
#define ANALYZER_SYMBOL_KALLSYMS_H

#include <stdbool.h>

#include "analyzer/symbol/source.h"
#include "base/buffer.h"

/*
 * The kernel's functions from the text of /proc/kallsyms: lines "ADDRESS TYPE NAME[\t[MODULE]]", of which the types
 * t, T, w and W are code. To those who may not know them all addresses are written as zeros.
 */
struct kallsyms {
	struct buffer text;
	struct table table;
	bool is_hidden; /* there were lines, all with the address 0 */
};

/* Takes the text's bytes (empty afterwards). NULL: memory is out. */
struct kallsyms *kallsyms_create(struct buffer *text);
void kallsyms_destroy(struct kallsyms *kallsyms);

/* self is a struct kallsyms. */
extern const struct source_ops kallsyms_source;

#endif
