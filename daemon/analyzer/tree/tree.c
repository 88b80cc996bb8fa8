#include "analyzer/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

/* A node while the tree is built: parents come before their children. */
struct tree {
	struct strings *names; /* borrowed */
	VEC(struct tree_node) nodes;
	struct map children; /* parent, name, is kernel -> index */
	uint32_t max_depth;
};

/* A name that is used, to be ordered. */
struct used_name {
	struct bytes_text text;
	uint32_t id;
};

struct order {
	uint32_t *ranks;                      /* by name id: its place among the names in byte order */
	uint32_t *sorted;                     /* node indices by rank of their names */
	uint32_t *first_child, *next_sibling; /* 0: none (the root is nobody's child) */
};

struct tree *tree_create(struct strings *names)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	const struct tree_node root = {.kind = TREE_UNKNOWN};

	if (tree == NULL || !VEC_PUSH(&tree->nodes, root)) {
		tree_destroy(tree);
		return NULL;
	}
	tree->names = names;
	return tree;
}

void tree_destroy(struct tree *tree)
{
	if (tree == NULL) {
		return;
	}
	VEC_FINISH(&tree->nodes);
	map_finish(&tree->children);
	free(tree);
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* A kernel function and one of the program may have the same name: they stay two nodes. Ids are below 2^31. */
static uint64_t child_key(uint32_t parent, const struct tree_frame *frame)
{
	return (uint64_t)parent << 32 | (uint64_t)(frame->kind == TREE_KERNEL) << 31 | frame->name;
}

/* The child's index; 0: memory is out. */
static uint32_t child_of(struct tree *tree, uint32_t parent, const struct tree_frame *frame)
{
	uint64_t key = child_key(parent, frame);
	const uint64_t *known = map_get(&tree->children, key);
	const struct tree_node node = {
		.name = frame->name,
		.parent = parent,
		.depth = tree->nodes.items[parent].depth + 1,
		.image = frame->image,
		.kind = frame->kind,
	};

	if (known != NULL) {
		return (uint32_t)*known;
	}
	if (tree->nodes.len >= UINT32_MAX || frame->name >= 1u << 31 || !VEC_PUSH(&tree->nodes, node)) {
		return 0;
	}
	if (!map_put(&tree->children, key, tree->nodes.len - 1)) {
		tree->nodes.len--;
		return 0;
	}
	tree->max_depth = node.depth > tree->max_depth ? node.depth : tree->max_depth;
	return (uint32_t)tree->nodes.len - 1;
}

bool tree_add(struct tree *tree, const struct tree_frame *frames, size_t count, uint64_t weight)
{
	uint32_t at = 0;

	for (size_t i = 0; i < count; i++) {
		at = child_of(tree, at, &frames[i]);
		if (at == 0) {
			return false;
		}
	}
	tree->nodes.items[at].self = add_saturating(tree->nodes.items[at].self, weight);
	return true;
}

static int compare_names(const void *left, const void *right)
{
	const struct used_name *a = left;
	const struct used_name *b = right;
	size_t len = a->text.len < b->text.len ? a->text.len : b->text.len;
	int order = len == 0 ? 0 : memcmp(a->text.data, b->text.data, len);

	if (order != 0) {
		return order;
	}
	return a->text.len < b->text.len ? -1 : a->text.len > b->text.len;
}

/* Ranks from 1 for the names that nodes have. *count is the highest. */
static bool rank_names(const struct tree *tree, struct order *order, uint32_t *count)
{
	VEC(struct used_name) used = {0};
	bool done = true;

	for (size_t i = 1; done && i < tree->nodes.len; i++) {
		uint32_t id = tree->nodes.items[i].name;
		const struct used_name name = {strings_text(tree->names, id), id};

		if (order->ranks[id] == 0) {
			order->ranks[id] = 1;
			done = VEC_PUSH(&used, name);
		}
	}
	if (used.len > 0) {
		qsort(used.items, used.len, sizeof(*used.items), compare_names);
	}
	for (size_t i = 0; i < used.len; i++) {
		order->ranks[used.items[i].id] = (uint32_t)i + 1;
	}
	*count = (uint32_t)used.len;
	VEC_FINISH(&used);
	return done;
}

/* The program's node before the kernel's of the same name: two ranks for each name. */
static size_t bucket_of(const struct order *order, const struct tree_node *node)
{
	return (size_t)order->ranks[node->name] * 2 + (node->kind == TREE_KERNEL);
}

/* A counting sort of all nodes at once, by name. */
static bool sort_nodes(const struct tree *tree, struct order *order, uint32_t rank_count)
{
	uint32_t *places = calloc((size_t)rank_count * 2 + 3, sizeof(*places));

	if (places == NULL) {
		return false;
	}
	for (size_t i = 1; i < tree->nodes.len; i++) {
		places[bucket_of(order, &tree->nodes.items[i]) + 1]++;
	}
	for (size_t i = 1; i < (size_t)rank_count * 2 + 3; i++) {
		places[i] += places[i - 1];
	}
	for (size_t i = 1; i < tree->nodes.len; i++) {
		order->sorted[places[bucket_of(order, &tree->nodes.items[i])]++] = (uint32_t)i;
	}
	free(places);
	return true;
}

/* From the last to the first, so that each list begins with the first. */
static void link_children(const struct tree *tree, struct order *order)
{
	for (size_t i = tree->nodes.len - 1; i-- > 0;) {
		uint32_t node = order->sorted[i];
		uint32_t parent = tree->nodes.items[node].parent;

		order->next_sibling[node] = order->first_child[parent];
		order->first_child[parent] = node;
	}
}

static void sum_totals(struct tree_node *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		nodes[i].total = nodes[i].self;
	}
	for (size_t i = count; i-- > 1;) {
		struct tree_node *parent = &nodes[nodes[i].parent];

		parent->total = add_saturating(parent->total, nodes[i].total);
	}
}

/* Copies the nodes in preorder. parent becomes the new index, end is set when a subtree has been left. */
static void copy_preorder(const struct tree *tree, const struct order *order, struct tree_node *to)
{
	const struct tree_node *from = tree->nodes.items;
	uint32_t count = 0;
	uint32_t at = 0;
	uint32_t parent = 0; /* new index of the node above at */

	for (;;) {
		to[count] = from[at];
		to[count].parent = parent;
		to[count].end = at; /* its old index until it is left */
		uint32_t here = count++;

		if (order->first_child[at] != 0) {
			at = order->first_child[at];
			parent = here;
			continue;
		}
		while (at != 0 && order->next_sibling[at] == 0) {
			to[here].end = count;
			here = to[here].parent;
			at = to[here].end;
		}
		to[here].end = count;
		if (at == 0) {
			return;
		}
		parent = to[here].parent;
		at = order->next_sibling[at];
	}
}

static bool reorder(struct tree *tree, struct order *order)
{
	size_t count = tree->nodes.len;
	uint32_t rank_count;
	struct tree_node *nodes = malloc(count * sizeof(*nodes));

	order->ranks = calloc(strings_count(tree->names) + 1, sizeof(uint32_t));
	order->sorted = calloc(count, sizeof(uint32_t));
	order->first_child = calloc(count, sizeof(uint32_t));
	order->next_sibling = calloc(count, sizeof(uint32_t));
	if (nodes == NULL || order->ranks == NULL || order->sorted == NULL ||
		order->first_child == NULL || order->next_sibling == NULL ||
		!rank_names(tree, order, &rank_count) || !sort_nodes(tree, order, rank_count)) {
		free(nodes);
		return false;
	}
	link_children(tree, order);
	sum_totals(tree->nodes.items, count);
	copy_preorder(tree, order, nodes);
	free(tree->nodes.items);
	tree->nodes.items = nodes;
	tree->nodes.capacity = count;
	return true;
}

bool tree_finish(struct tree *tree)
{
	struct order order = {0};
	bool done = reorder(tree, &order);

	free(order.ranks);
	free(order.sorted);
	free(order.first_child);
	free(order.next_sibling);
	if (done) {
		map_finish(&tree->children);
	}
	return done;
}

const struct tree_node *tree_nodes(const struct tree *tree, size_t *count)
{
	*count = tree->nodes.len;
	return tree->nodes.items;
}

const struct strings *tree_names(const struct tree *tree)
{
	return tree->names;
}

uint64_t tree_total(const struct tree *tree)
{
	return tree->nodes.items[0].total;
}

uint32_t tree_max_depth(const struct tree *tree)
{
	return tree->max_depth;
}
