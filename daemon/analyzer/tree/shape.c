#include "analyzer/tree/shape.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/tree/building.h"

#define WHOLE_PPM 1000000

bool shape_is_plain(const struct tree_shape *shape)
{
	return shape->order == TREE_BY_NAME && !shape->merges_threads && shape->least_ppm == 0;
}

/* Adds every node of from to the tree to; at: the new index of the open node at each depth. */
static bool add_nodes(struct tree *to, const struct tree *from, bool merges_threads, uint32_t *at)
{
	for (size_t i = 0; i < from->nodes.len; i++) {
		const struct tree_node *node = &from->nodes.items[i];
		const struct tree_frame frame = {node->name, node->image, node->kind};
		uint32_t here = 0;

		if (i > 0 && !(merges_threads && node->kind == TREE_THREAD && node->depth == 1)) {
			here = tree_child(to, at[node->depth - 1], &frame);
			if (here == 0) {
				return false;
			}
		}
		at[node->depth] = here;
		tree_add_self(to, here, node->self);
	}
	return true;
}

/* The least weight that is the share of total, rounded up. */
static uint64_t least_of(uint64_t total, uint32_t ppm)
{
	uint64_t rest = total % WHOLE_PPM * ppm;

	return total / WHOLE_PPM * ppm + rest / WHOLE_PPM + (rest % WHOLE_PPM > 0);
}

struct open_node {
	uint32_t node; /* its new index */
	uint64_t cut;  /* the weight cut from it */
};

/* Where the pruning stands: the nodes kept so far stand at the front, in place of those already read. */
struct pruning {
	struct tree_node *nodes;
	size_t count;
	uint32_t name;          /* of what was summed up */
	struct open_node *open; /* owned; by depth */
	size_t depth;           /* of open nodes */
};

static void append(struct pruning *pruning, struct tree_node node)
{
	node.parent = node.depth > 0 ? pruning->open[node.depth - 1].node : 0;
	pruning->nodes[pruning->count++] = node;
}

/* Closes the open nodes at depth and below. What was cut was at least one node read before, so there is room for one. */
static void close_nodes(struct pruning *pruning, size_t depth)
{
	while (pruning->depth > depth) {
		size_t last = --pruning->depth;
		uint64_t cut = pruning->open[last].cut;

		if (cut > 0) {
			append(pruning, (struct tree_node){.name = pruning->name,
								.depth = (uint32_t)last + 1,
								.end = (uint32_t)pruning->count + 1,
								.kind = TREE_NEUTRAL,
								.self = cut,
								.total = cut});
		}
		pruning->nodes[pruning->open[last].node].end = (uint32_t)pruning->count;
	}
}

static void prune_nodes(struct pruning *pruning, size_t count, uint64_t least)
{
	for (size_t i = 0; i < count;) {
		struct tree_node node = pruning->nodes[i];

		close_nodes(pruning, node.depth);
		if (i > 0 && node.total < least) {
			pruning->open[node.depth - 1].cut += node.total;
			i = node.end;
			continue;
		}
		pruning->open[node.depth].node = (uint32_t)pruning->count;
		pruning->open[node.depth].cut = 0;
		pruning->depth = (size_t)node.depth + 1;
		append(pruning, node);
		i++;
	}
	close_nodes(pruning, 0);
}

static uint32_t deepest(const struct tree *tree)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < tree->nodes.len; i++) {
		depth = tree->nodes.items[i].depth > depth ? tree->nodes.items[i].depth : depth;
	}
	return depth;
}

static bool prune(struct tree *tree, uint32_t ppm)
{
	struct pruning pruning = {
		.nodes = tree->nodes.items,
		.name = strings_intern(tree->names, SHAPE_SMALLER, strlen(SHAPE_SMALLER), NULL),
		.open = calloc((size_t)tree->max_depth + 1, sizeof(*pruning.open)),
	};
	bool done = pruning.name != 0 && pruning.open != NULL;

	if (done) {
		tree->least = least_of(tree_total(tree), ppm);
		tree->whole_count = tree->nodes.len;
		prune_nodes(&pruning, tree->nodes.len, tree->least);
		tree->nodes.len = pruning.count;
		tree->max_depth = deepest(tree);
	}
	free(pruning.open);
	return done;
}

struct tree *shape_apply(const struct tree_shape *shape, const struct tree *tree)
{
	struct tree *made = tree_create(tree->names);
	uint32_t *at = calloc((size_t)tree->max_depth + 1, sizeof(*at));
	bool done = made != NULL && at != NULL && add_nodes(made, tree, shape->merges_threads, at) &&
				tree_finish_in(made, shape->order) &&
				(shape->least_ppm == 0 || prune(made, shape->least_ppm));

	free(at);
	if (!done) {
		tree_destroy(made);
		return NULL;
	}
	return made;
}
