#include "analyzer/tree/functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct ranked {
	struct function function;
	struct bytes_text name;
	uint32_t
		entered_until; /* index behind the outermost node of this function that encloses the walk; 0: none */
};

struct ranking {
	VEC(struct ranked) items;
	struct map by_name; /* name, is kernel -> index */
};

static struct ranked *find(
	struct ranking *ranking, const struct tree *tree, const struct tree_node *node)
{
	uint64_t key = (uint64_t)node->name << 1 | (node->kind == TREE_KERNEL);
	const uint64_t *known = map_get(&ranking->by_name, key);
	const struct ranked ranked = {
		.function = {.name = node->name, .image = node->image, .kind = node->kind},
		.name = strings_text(tree_names(tree), node->name),
	};

	if (known != NULL) {
		return &ranking->items.items[*known];
	}
	if (!VEC_PUSH(&ranking->items, ranked) ||
		!map_put(&ranking->by_name, key, ranking->items.len - 1)) {
		return NULL;
	}
	return &ranking->items.items[ranking->items.len - 1];
}

/* Nodes are in preorder: a node below the one that was counted comes before that one's end. */
static bool gather(struct ranking *ranking, const struct tree *tree)
{
	size_t count;
	const struct tree_node *nodes = tree_nodes(tree, &count);

	for (size_t i = 1; i < count; i++) {
		if (nodes[i].kind == TREE_THREAD) {
			continue;
		}
		struct ranked *ranked = find(ranking, tree, &nodes[i]);

		if (ranked == NULL) {
			return false;
		}
		ranked->function.self += nodes[i].self;
		if (i >= ranked->entered_until) {
			ranked->function.total += nodes[i].total;
			ranked->entered_until = nodes[i].end;
		}
	}
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct ranked *a = left;
	const struct ranked *b = right;
	size_t len = a->name.len < b->name.len ? a->name.len : b->name.len;

	if (a->function.self != b->function.self) {
		return a->function.self > b->function.self ? -1 : 1;
	}
	if (a->function.total != b->function.total) {
		return a->function.total > b->function.total ? -1 : 1;
	}
	int order = len == 0 ? 0 : memcmp(a->name.data, b->name.data, len);

	if (order != 0 || a->name.len != b->name.len) {
		return order != 0 ? order : a->name.len < b->name.len ? -1 : 1;
	}
	return (a->function.kind == TREE_KERNEL) - (b->function.kind == TREE_KERNEL);
}

static bool copy(struct functions *functions, struct ranking *ranking)
{
	functions->items = calloc(ranking->items.len + 1, sizeof(*functions->items));
	if (functions->items == NULL) {
		return false;
	}
	if (ranking->items.len > 0) {
		qsort(ranking->items.items, ranking->items.len, sizeof(*ranking->items.items), compare);
	}
	for (size_t i = 0; i < ranking->items.len; i++) {
		functions->items[i] = ranking->items.items[i].function;
	}
	functions->len = ranking->items.len;
	return true;
}

bool functions_init(struct functions *functions, const struct tree *tree)
{
	struct ranking ranking = {0};

	*functions = (struct functions){0};
	bool done = gather(&ranking, tree) && copy(functions, &ranking);

	VEC_FINISH(&ranking.items);
	map_finish(&ranking.by_name);
	return done;
}

void functions_finish(struct functions *functions)
{
	free(functions->items);
	*functions = (struct functions){0};
}
