#ifndef ANALYZER_EXPORT_SVG_STATIC_H
#define ANALYZER_EXPORT_SVG_STATIC_H

#include <stdbool.h>

#include "analyzer/export/markup.h"
#include "analyzer/export/svg.h"
#include "analyzer/export/svg_legend.h"

/*
 * The picture that is seen while scripts are off (GitHub, mail): the widest SVG_STATIC_FRAMES frames only, so that its size does not
 * follow the profile's, drawn with plain rectangles and text.
 */
#define SVG_STATIC_FRAMES     2000
#define SVG_STATIC_WIDTH      1200 /* when none was asked for */
#define SVG_STATIC_HINT_BYTES 256

struct svg_static {
	const struct tree *tree;
	const struct svg_options *options;
	const struct svg_legend *legend;
	/* Set by svg_static_init: */
	const struct tree_node *nodes;
	size_t count, drawn;
	uint64_t widest;      /* frames with more are drawn, */
	size_t at_widest;     /* and so many of those with exactly this */
	uint64_t *next_start; /* owned; per depth: where the open frame's next child begins */
	uint32_t width, top, rows;
	char hint[SVG_STATIC_HINT_BYTES];
};

/* Chooses the frames. False: memory is out. */
bool svg_static_init(struct svg_static *picture, const struct tree *tree,
	const struct svg_options *options, const struct svg_legend *legend);
void svg_static_finish(struct svg_static *picture);
/* In pixels. */
uint64_t svg_static_height(const struct svg_static *picture);
/* Appends <g class="pf-static">. */
void svg_static_write(struct svg_static *picture, struct markup *markup);

#endif
