#ifndef ANALYZER_TREE_BUILDING_H
#define ANALYZER_TREE_BUILDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/tree/tree.h"
#include "base/vec.h"

/* The tree's inside: what tree.c, order.c and shape.c need of each other. */

/* A node's place in the table of children. The tag is of its key's hash: nearly every wrong node is known without looking at it. */
struct tree_slot {
	uint32_t tag, node; /* node 0: empty (the root is nobody's child) */
};

struct tree {
	struct strings *names; /* borrowed */
	VEC(struct tree_node)
	nodes;                   /* while the tree is built, parents only come before their children */
	struct tree_slot *slots; /* owned; by parent, name, is kernel; NULL once finished */
	size_t capacity;         /* of slots: a power of two */
	uint32_t max_depth;
	uint64_t least;     /* nodes with less were summed up; 0: none were */
	size_t whole_count; /* nodes before that */
};

/* The child's index, made when it is new; 0: memory is out. */
uint32_t tree_child(struct tree *tree, uint32_t parent, const struct tree_frame *frame);
void tree_add_self(struct tree *tree, uint32_t node, uint64_t weight);
/* tree_finish, with another order of siblings. */
bool tree_finish_in(struct tree *tree, enum tree_order order);

#endif
