#ifndef ANALYZER_TREE_TREE_H
#define ANALYZER_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strings.h"

/*
 * The call tree: stacks merged from the outermost frame inwards, weights summed. Built by tree_add, made readable by tree_finish:
 * then the nodes stand in preorder, node 0 is the root, siblings are sorted by the bytes of their names, so that equal
 * profiles give equal trees. No recursion anywhere: depth is the target's choice.
 */
enum tree_kind {
	TREE_THREAD,
	TREE_PROGRAM, /* in the process's own executable */
	TREE_LIBRARY, /* in another file */
	TREE_KERNEL,
	TREE_JIT, /* in executable memory without a file */
	TREE_INTERPRETED,
	TREE_INLINED, /* nothing makes it yet */
	TREE_MARKER,
	TREE_UNKNOWN, /* in nothing that was mapped */
	TREE_NEUTRAL, /* the root, and what was summed up */
	TREE_KINDS    /* how many there are */
};

enum tree_order { TREE_BY_NAME, TREE_BY_WEIGHT };

struct tree_node {
	uint32_t name;        /* string id in the tree's names; the root's is 0 */
	uint32_t parent;      /* index; the root's is 0 */
	uint32_t end;         /* after tree_finish: index behind the node's subtree */
	uint32_t depth;       /* the root's is 0, a thread's 1 */
	uint32_t image;       /* string id of the image's file name, 0: none */
	uint8_t kind;         /* enum tree_kind */
	uint64_t self, total; /* weight: samples for CPU profiles */
};

struct tree;

/* names is borrowed: the ids in frames are its ids. */
struct tree *tree_create(struct strings *names);
void tree_destroy(struct tree *tree);

struct tree_frame {
	uint32_t name;
	uint32_t image;
	uint8_t kind;
};

/* Adds weight to the path; frames[0] is the outermost (the thread). Siblings merge when their names are equal and
 * both or none are the kernel's; the node has the kind that comes first in enum tree_kind, with its image, whatever the order in which they
 * come. False: memory is out. */
bool tree_add(struct tree *tree, const struct tree_frame *frames, size_t count, uint64_t weight);
/* Once; after it nothing can be added. */
bool tree_finish(struct tree *tree);

/* After tree_finish. */
const struct tree_node *tree_nodes(const struct tree *tree, size_t *count);
const struct strings *tree_names(const struct tree *tree);
uint64_t tree_total(const struct tree *tree);
uint32_t tree_max_depth(const struct tree *tree);
/* Of a shaped tree (shape.h): nodes with less weight were summed up, and how many nodes there were before; 0 and all. */
uint64_t tree_least(const struct tree *tree);
size_t tree_whole_count(const struct tree *tree);

#endif
