#ifndef ANALYZER_EXPORT_SVG_H
#define ANALYZER_EXPORT_SVG_H

#include <stdbool.h>

#include "analyzer/tree/tree.h"
#include "base/buffer.h"

/*
 * capture.svg: an interactive flame graph in one file without network: readable with scripts off, hover, click to
 * zoom, search. Valid XML 1.0 whatever bytes a name holds.
 */
struct svg_options {
	const char *title;    /* any bytes; borrowed */
	const char *subtitle; /* any bytes, or NULL */
	const char *unit;     /* "samples" */
};

/* Appends the whole document. False when memory is out. */
bool svg_write(struct buffer *out, const struct tree *tree, const struct svg_options *options);

#endif
