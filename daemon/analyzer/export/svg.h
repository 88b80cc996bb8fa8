#ifndef ANALYZER_EXPORT_SVG_H
#define ANALYZER_EXPORT_SVG_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/export/svg_legend.h"
#include "analyzer/tree/tree.h"
#include "base/buffer.h"

/*
 * capture.svg: an interactive flame graph in one file without network. Valid XML 1.0 whatever bytes a name holds. It has three parts: a
 * picture of the widest frames (svg_static.h), which is seen while scripts are off; the whole tree as data (svg_pack.h); and the script
 * and style in flamegraph/, which draw the data in a browser.
 */
enum svg_layout {
	SVG_ICICLE, /* the root at the top */
	SVG_FLAME,  /* the root at the bottom */
};

struct svg_options {
	const char *title;    /* any bytes; borrowed, as all texts */
	const char *subtitle; /* any bytes, or NULL */
	const char *note;     /* what the picture lacks; any bytes, or NULL */
	const char *unit;     /* "samples" */
	uint32_t width_px;    /* 0: as wide as the window */
	enum svg_layout layout;
	enum svg_colors colors;
};

/* Appends the whole document. tree: finished, or shaped. False when memory is out. */
bool svg_write(struct buffer *out, const struct tree *tree, const struct svg_options *options);

#endif
