#ifndef ANALYZER_EXPORT_SVG_LEGEND_H
#define ANALYZER_EXPORT_SVG_LEGEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/export/svg_palette.h"
#include "analyzer/tree/tree.h"

/* What the colours mean: the kinds of frames that occur, or the files with most weight. */
#define SVG_LEGEND_IMAGES 8

struct svg_legend_item {
	struct bytes_text name; /* borrowed from the tree's names, or constant */
	struct svg_colour colour;
	uint64_t self; /* weight of the frames that have the colour */
};

struct svg_legend {
	struct svg_legend_item items[SVG_LEGEND_IMAGES + TREE_KINDS];
	size_t count; /* 0 when colours follow names */
};

/* "program": what a kind is called. */
const char *svg_legend_kind(uint8_t kind);
/* False: memory is out. */
bool svg_legend_init(struct svg_legend *legend, const struct tree *tree, enum svg_colors colors);

#endif
