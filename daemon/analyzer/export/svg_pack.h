#ifndef ANALYZER_EXPORT_SVG_PACK_H
#define ANALYZER_EXPORT_SVG_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/export/svg_legend.h"
#include "analyzer/tree/tree.h"
#include "base/buffer.h"

/*
 * The tree as the flame graph's script reads it: a JSON object in which a frame costs about five bytes.
 *
 *   {"v":2, "cut":C, "frames":F, "all":N,
 *    "names":[…], "images":["", …], "light":["#rrggbb", …], "dark":["#rrggbb", …],
 *    "symbols":"kind colour image" per name, "tree":"head symbol [self]" per frame}
 *
 * symbols and tree are numbers as markup_vlq writes them. A name's kind is enum tree_kind, its colour an index into light and
 * dark (the same colour on the two kinds of page), its image an index into images. Frames come in preorder, siblings in the tree's order; head is
 * 2 × (levels closed before this frame) + (1 when a self weight follows). The root is the first.
 *
 * When not everything fits, frames lighter than C are left out with all below them, and each parent gets one last child
 * SHAPE_SMALLER with their sum, so that sums stay right; what the tree's shape has summed up already goes the same way. F frames stand in
 * the data, of the profile's N.
 */

/* What a frame is called in the picture: the root and frames without a name have a substitute. */
struct bytes_text svg_pack_name(const struct tree *tree, const struct tree_node *node);

/* The rank-th largest total of the nodes, counted from 1; 0 when there are fewer. */
uint64_t svg_pack_nth_total(const struct tree_node *nodes, size_t count, size_t rank);

/*
 * Appends the object's members without the braces, in at most limit bytes (a few hundred always fit). Names longer than 64 KiB are
 * cut, and shorter ones when that saves frames. False when memory is out.
 */
bool svg_pack_write(
	struct buffer *out, const struct tree *tree, const struct svg_legend *legend, size_t limit);

#endif
