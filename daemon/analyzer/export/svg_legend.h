#ifndef ANALYZER_EXPORT_SVG_LEGEND_H
#define ANALYZER_EXPORT_SVG_LEGEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/export/svg_palette.h"
#include "analyzer/tree/tree.h"

/*
 * Which frame has which colour, and what the colours mean: the kinds of frames that occur; or the files in which most of the weight is, each
 * with a hue of its own, and the kinds of those frames that are in no file; or nothing, when each name has its colour.
 */
enum svg_colors { SVG_COLORS_KIND, SVG_COLORS_IMAGE, SVG_COLORS_NAME };

struct svg_legend_item {
	struct bytes_text name; /* borrowed from the tree's names, or constant */
	struct svg_colour colour;
	uint64_t self;  /* weight of the frames that have the colour */
	uint32_t image; /* string id, or 0 */
};

struct svg_legend {
	enum svg_colors colors;
	struct svg_legend_item items[SVG_IMAGE_HUES + 1 + TREE_KINDS];
	size_t count, images; /* images: how many come first */
};

/* "program": what a kind is called. */
const char *svg_legend_kind(uint8_t kind);
/* tree: finished; its names are borrowed. False: memory is out. */
bool svg_legend_init(struct svg_legend *legend, const struct tree *tree, enum svg_colors colors);
/* name: as it is shown. image: string id. */
struct svg_colour svg_legend_colour(
	const struct svg_legend *legend, uint8_t kind, struct bytes_text name, uint32_t image);

#endif
