#ifndef ANALYZER_TREE_SHAPE_H
#define ANALYZER_TREE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/tree/tree.h"

/* A tree as somebody wants to see it. */
struct tree_shape {
	enum tree_order order; /* of siblings; equal weights are ordered by name */
	bool merges_threads;   /* no thread level: the stacks of all threads are one tree */
	uint32_t least_ppm;    /* nodes below this share of the whole are summed up */
};

/* What stands for the children of a node that are too light, with all below them: its last child, of the kind TREE_NEUTRAL. */
#define SHAPE_SMALLER "(smaller frames)"

/* Whether the shape is that of every finished tree. */
bool shape_is_plain(const struct tree_shape *shape);
/* A new finished tree with the same sum, from a finished one, whose names it borrows. NULL: memory is out. */
struct tree *shape_apply(const struct tree_shape *shape, const struct tree *tree);

#endif
