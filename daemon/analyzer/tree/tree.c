#include "analyzer/tree/tree.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/tree/building.h"
#include "base/map.h"

#define FIRST_CAPACITY 64

struct tree *tree_create(struct strings *names)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	const struct tree_node root = {.kind = TREE_NEUTRAL};

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
	free(tree->slots);
	free(tree);
}

static void settle_kind(struct tree_node *node, const struct tree_frame *frame)
{
	if (frame->kind < node->kind) {
		node->kind = frame->kind;
		node->image = frame->image;
	}
}

/* A kernel function and one of the program may have the same name: they stay two nodes. Ids are below 2^31. */
static uint64_t hash_of(uint32_t parent, uint32_t name, uint8_t kind)
{
	return map_hash((uint64_t)parent << 32 | (uint64_t)(kind == TREE_KERNEL) << 31 | name);
}

static bool is_child(const struct tree_node *node, uint32_t parent, const struct tree_frame *frame)
{
	return node->parent == parent && node->name == frame->name &&
		   (node->kind == TREE_KERNEL) == (frame->kind == TREE_KERNEL);
}

/* The child's slot, or the empty one where it would go. */
static struct tree_slot *find(
	const struct tree *tree, uint64_t hash, uint32_t parent, const struct tree_frame *frame)
{
	size_t mask = tree->capacity - 1;
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t i = (size_t)hash & mask;

	while (tree->slots[i].node != 0 &&
		   (tree->slots[i].tag != tag ||
			   !is_child(&tree->nodes.items[tree->slots[i].node], parent, frame))) {
		i = (i + 1) & mask;
	}
	return &tree->slots[i];
}

static void put_again(struct tree *tree, uint32_t node)
{
	const struct tree_node *from = &tree->nodes.items[node];
	uint64_t hash = hash_of(from->parent, from->name, from->kind);
	size_t i = (size_t)hash & (tree->capacity - 1);

	while (tree->slots[i].node != 0) {
		i = (i + 1) & (tree->capacity - 1);
	}
	tree->slots[i] = (struct tree_slot){(uint32_t)(hash >> 32), node};
}

/* Keeps a quarter of the slots empty. The old table is not needed for the new one. */
static bool make_room(struct tree *tree)
{
	if (tree->nodes.len < tree->capacity / 4 * 3) {
		return true;
	}
	size_t capacity = tree->capacity == 0 ? FIRST_CAPACITY : tree->capacity * 2;
	struct tree_slot *slots = calloc(capacity, sizeof(*slots));

	if (slots == NULL) {
		return false;
	}
	free(tree->slots);
	tree->slots = slots;
	tree->capacity = capacity;
	for (size_t i = 1; i < tree->nodes.len; i++) {
		put_again(tree, (uint32_t)i);
	}
	return true;
}

uint32_t tree_child(struct tree *tree, uint32_t parent, const struct tree_frame *frame)
{
	const struct tree_node node = {
		.name = frame->name,
		.parent = parent,
		.depth = tree->nodes.items[parent].depth + 1,
		.image = frame->image,
		.kind = frame->kind,
	};

	if (frame->name >= 1u << 31 || !make_room(tree)) {
		return 0;
	}
	uint64_t hash = hash_of(parent, frame->name, frame->kind);
	struct tree_slot *slot = find(tree, hash, parent, frame);

	if (slot->node != 0) {
		settle_kind(&tree->nodes.items[slot->node], frame);
		return slot->node;
	}
	if (tree->nodes.len >= UINT32_MAX || !VEC_PUSH(&tree->nodes, node)) {
		return 0;
	}
	*slot = (struct tree_slot){(uint32_t)(hash >> 32), (uint32_t)tree->nodes.len - 1};
	tree->max_depth = node.depth > tree->max_depth ? node.depth : tree->max_depth;
	return slot->node;
}

void tree_add_self(struct tree *tree, uint32_t node, uint64_t weight)
{
	uint64_t *self = &tree->nodes.items[node].self;

	*self = weight > UINT64_MAX - *self ? UINT64_MAX : *self + weight;
}

bool tree_add(struct tree *tree, const struct tree_frame *frames, size_t count, uint64_t weight)
{
	uint32_t at = 0;

	for (size_t i = 0; i < count; i++) {
		at = tree_child(tree, at, &frames[i]);
		if (at == 0) {
			return false;
		}
	}
	tree_add_self(tree, at, weight);
	return true;
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

uint64_t tree_least(const struct tree *tree)
{
	return tree->least;
}

size_t tree_whole_count(const struct tree *tree)
{
	return tree->whole_count > 0 ? tree->whole_count : tree->nodes.len;
}
