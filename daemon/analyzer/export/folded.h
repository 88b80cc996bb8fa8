#ifndef ANALYZER_EXPORT_FOLDED_H
#define ANALYZER_EXPORT_FOLDED_H

#include <stdbool.h>
#include <stddef.h>

#include "analyzer/tree/tree.h"
#include "base/buffer.h"

/*
 * capture.folded: "thread;outermost;…;innermost count", the strict subset that every reader of the format takes alike
 * (docs/protocol.md, chapter 6): one stack a line, lines sorted by their bytes, valid UTF-8 without control characters, ";" in a
 * name is ":", counts are samples of exactly this leaf, lines below 64 KiB (the middle frames of a longer one become "[... N frames elided]"; names are cut at
 * 8 KiB). Frames of the kernel end in "_[k]". A name that ends in a number of its own gets a "_" behind it, which some readers would take
 * for a second count.
 */

/* Appends all lines; *stacks (may be NULL) is their number. False when memory is out. */
bool folded_write(struct buffer *out, const struct tree *tree, size_t *stacks);

#endif
