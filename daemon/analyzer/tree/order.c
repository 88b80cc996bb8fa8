#include "analyzer/tree/building.h"

#include <stdlib.h>
#include <string.h>

/* A name that is used, to be ordered. */
struct used_name {
	struct bytes_text text;
	uint32_t id;
};

struct order {
	uint32_t *ranks;                      /* by name id: its place among the names in byte order */
	uint32_t *sorted;                     /* node indices in the order of siblings */
	uint32_t *first_child, *next_sibling; /* 0: none (the root is nobody's child) */
};

/* A node among all, to be ordered by weight. */
struct weighed {
	uint64_t total;
	uint32_t place, node; /* place: in the order of names */
};

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
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

static int compare_weights(const void *left, const void *right)
{
	const struct weighed *a = left;
	const struct weighed *b = right;

	if (a->total != b->total) {
		return a->total > b->total ? -1 : 1;
	}
	return a->place < b->place ? -1 : a->place > b->place;
}

/* The heaviest first; what weighs the same stays ordered by name. */
static bool sort_by_weight(const struct tree *tree, struct order *order)
{
	size_t count = tree->nodes.len - 1;
	struct weighed *list = calloc(count + 1, sizeof(*list));

	if (list == NULL) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t node = order->sorted[i];

		list[i] = (struct weighed){tree->nodes.items[node].total, (uint32_t)i, node};
	}
	qsort(list, count, sizeof(*list), compare_weights);
	for (size_t i = 0; i < count; i++) {
		order->sorted[i] = list[i].node;
	}
	free(list);
	return true;
}

static bool sort_all(struct tree *tree, struct order *order, enum tree_order by)
{
	uint32_t rank_count;

	order->ranks = calloc(strings_count(tree->names) + 1, sizeof(uint32_t));
	order->sorted = calloc(tree->nodes.len, sizeof(uint32_t));
	return order->ranks != NULL && order->sorted != NULL && rank_names(tree, order, &rank_count) &&
		   sort_nodes(tree, order, rank_count) &&
		   (by == TREE_BY_NAME || sort_by_weight(tree, order));
}

/* What is not needed any more is freed at once: a profile of millions of nodes is in memory twice here. */
static bool reorder(struct tree *tree, struct order *order, enum tree_order by)
{
	size_t count = tree->nodes.len;

	sum_totals(tree->nodes.items, count);
	if (!sort_all(tree, order, by)) {
		return false;
	}
	order->first_child = calloc(count, sizeof(uint32_t));
	order->next_sibling = calloc(count, sizeof(uint32_t));
	if (order->first_child == NULL || order->next_sibling == NULL) {
		return false;
	}
	link_children(tree, order);
	free(order->ranks);
	free(order->sorted);
	order->ranks = order->sorted = NULL;
	struct tree_node *nodes = malloc(count * sizeof(*nodes));

	if (nodes == NULL) {
		return false;
	}
	copy_preorder(tree, order, nodes);
	free(tree->nodes.items);
	tree->nodes.items = nodes;
	tree->nodes.capacity = count;
	return true;
}

bool tree_finish_in(struct tree *tree, enum tree_order by)
{
	struct order order = {0};

	free(tree->slots);
	tree->slots = NULL;
	tree->capacity = 0;
	bool done = reorder(tree, &order, by);

	free(order.ranks);
	free(order.sorted);
	free(order.first_child);
	free(order.next_sibling);
	return done;
}

bool tree_finish(struct tree *tree)
{
	return tree_finish_in(tree, TREE_BY_NAME);
}
