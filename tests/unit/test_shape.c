#include "analyzer/tree/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STACKS 300
#define DEPTH  6

/* Random stacks over few names, so that many merge; and the tree of them. */
struct fixture {
	struct strings *names;
	struct tree *tree;
	struct stack {
		uint32_t names[DEPTH]; /* [0]: the thread */
		size_t depth;
		uint64_t weight;
	} stacks[STACKS];
	uint64_t total;
};

static uint32_t name_of(struct fixture *fixture, char letter, int number)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%c%d", letter, number);

	return strings_intern(fixture->names, text, (size_t)len, NULL);
}

static void make_stack(struct fixture *fixture, struct stack *stack)
{
	struct tree_frame frames[DEPTH];

	stack->depth = 2 + (size_t)rand() % (DEPTH - 1);
	stack->weight = 1 + (uint64_t)rand() % 50;
	for (size_t i = 0; i < stack->depth; i++) {
		stack->names[i] = name_of(fixture, i == 0 ? 't' : 'f', rand() % 4);
		frames[i] = (struct tree_frame){stack->names[i], 0, i == 0 ? TREE_THREAD : TREE_PROGRAM};
	}
	fixture->total += stack->weight;
	assert_true(tree_add(fixture->tree, frames, stack->depth, stack->weight));
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	srand(7);
	fixture->names = strings_create();
	fixture->tree = tree_create(fixture->names);
	for (size_t i = 0; i < STACKS; i++) {
		make_stack(fixture, &fixture->stacks[i]);
	}
	assert_true(tree_finish(fixture->tree));
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	tree_destroy(fixture->tree);
	strings_destroy(fixture->names);
	free(fixture);
	return 0;
}

/* The names from the root to a node, without the root. */
static size_t path_of(const struct tree_node *nodes, const struct tree_node *node, uint32_t *path)
{
	size_t depth = node->depth;

	for (size_t i = depth; i-- > 0; node = &nodes[node->parent]) {
		path[i] = node->name;
	}
	return depth;
}

/* From the stacks alone: what ran in this path, and what in it or below; skip: levels of the stacks that do not count. */
static void weigh(const struct fixture *fixture, const uint32_t *path, size_t depth, size_t skip,
	uint64_t *self, uint64_t *total)
{
	*self = *total = 0;
	for (size_t i = 0; i < STACKS; i++) {
		const struct stack *stack = &fixture->stacks[i];
		size_t len = stack->depth - skip;

		if (len >= depth && memcmp(stack->names + skip, path, depth * sizeof(*path)) == 0) {
			*total += stack->weight;
			*self += len == depth ? stack->weight : 0;
		}
	}
}

/* What must be true of any tree: links, ends and sums agree. */
static void assert_whole(const struct tree *tree, uint64_t total)
{
	size_t count;
	const struct tree_node *nodes = tree_nodes(tree, &count);

	assert_int_equal(nodes[0].total, total);
	assert_int_equal(nodes[0].end, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t sum = nodes[i].self;

		for (size_t child = i + 1; child < nodes[i].end; child = nodes[child].end) {
			assert_int_equal(nodes[child].parent, i);
			assert_int_equal(nodes[child].depth, nodes[i].depth + 1);
			assert_in_range(nodes[child].end, child + 1, nodes[i].end);
			sum += nodes[child].total;
		}
		assert_int_equal(nodes[i].total, sum);
		assert_true(nodes[i].depth <= tree_max_depth(tree));
	}
}

static struct tree *apply(struct fixture *fixture, struct tree_shape shape)
{
	struct tree *made = shape_apply(&shape, fixture->tree);

	assert_non_null(made);
	assert_whole(made, fixture->total);
	return made;
}

static void merges_the_stacks_of_all_threads(void **state)
{
	struct fixture *fixture = *state;
	struct tree *made = apply(fixture, (struct tree_shape){.merges_threads = true});
	size_t count;
	const struct tree_node *nodes = tree_nodes(made, &count);

	for (size_t i = 1; i < count; i++) {
		uint32_t path[DEPTH];
		size_t depth = path_of(nodes, &nodes[i], path);
		uint64_t self, total;

		weigh(fixture, path, depth, 1, &self, &total);
		assert_int_equal(nodes[i].self, self);
		assert_int_equal(nodes[i].total, total);
		assert_int_equal(nodes[i].kind, TREE_PROGRAM);
		assert_true(i == 1 || nodes[i].parent != nodes[i - 1].parent ||
					strcmp(strings_text(fixture->names, nodes[i - 1].name).data,
						strings_text(fixture->names, nodes[i].name).data) < 0);
	}
	tree_destroy(made);
}

static void orders_by_weight_then_by_name(void **state)
{
	struct fixture *fixture = *state;
	struct tree *made = apply(fixture, (struct tree_shape){.order = TREE_BY_WEIGHT});
	size_t count, plain_count, equal = 0;
	const struct tree_node *nodes = tree_nodes(made, &count);

	tree_nodes(fixture->tree, &plain_count);
	assert_int_equal(count, plain_count);
	for (size_t i = 1; i < count; i++) {
		uint32_t path[DEPTH];
		size_t depth = path_of(nodes, &nodes[i], path), next = nodes[i].end;
		uint64_t self, total;

		weigh(fixture, path, depth, 0, &self, &total);
		assert_int_equal(nodes[i].self, self);
		assert_int_equal(nodes[i].total, total);
		if (next < nodes[nodes[i].parent].end) {
			assert_true(nodes[i].total >= nodes[next].total);
			equal += nodes[i].total == nodes[next].total;
			assert_true(nodes[i].total > nodes[next].total ||
						strcmp(strings_text(fixture->names, nodes[i].name).data,
							strings_text(fixture->names, nodes[next].name).data) < 0);
		}
	}
	assert_true(equal > 0); /* else names were not tested */
	tree_destroy(made);
}

/* Each node is either one that weighs enough, or the last child with the weight of all the others. */
static void sums_up_what_is_below_the_least_share(void **state)
{
	struct fixture *fixture = *state;
	struct tree *made = apply(fixture, (struct tree_shape){.least_ppm = 10000});
	uint64_t least = (fixture->total + 99) / 100;
	size_t count, plain_count, sums = 0, kept = 1, expected = 1;
	const struct tree_node *nodes = tree_nodes(made, &count);
	const struct tree_node *plain = tree_nodes(fixture->tree, &plain_count);

	assert_int_equal(tree_least(made), least);
	assert_int_equal(tree_whole_count(made), plain_count);
	for (size_t i = 1; i < count; i++) {
		uint32_t path[DEPTH];
		size_t depth = path_of(nodes, &nodes[i], path);
		uint64_t self, total;

		if (nodes[i].kind == TREE_NEUTRAL) {
			assert_string_equal(strings_text(fixture->names, nodes[i].name).data, SHAPE_SMALLER);
			assert_int_equal(nodes[i].end, nodes[nodes[i].parent].end);
			assert_int_equal(nodes[i].self, nodes[i].total);
			sums++;
			continue;
		}
		weigh(fixture, path, depth, 0, &self, &total);
		assert_int_equal(nodes[i].total, total);
		assert_int_equal(nodes[i].self, self);
		assert_true(total >= least);
		kept++;
	}
	for (size_t i = 1; i < plain_count; i++) {
		expected += plain[i].total >= least;
	}
	assert_int_equal(kept, expected);
	assert_true(sums > 3 && kept > 10);
	tree_destroy(made);
}

static void does_all_of_it_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct tree *made = apply(fixture, (struct tree_shape){TREE_BY_WEIGHT, true, 100000});
	size_t count;
	const struct tree_node *nodes = tree_nodes(made, &count);

	assert_int_equal(nodes[1].depth, 1);
	assert_int_equal(nodes[1].kind, TREE_PROGRAM);
	for (size_t i = 1; i < count; i++) {
		assert_true(nodes[i].kind == TREE_NEUTRAL || nodes[i].total * 10 >= fixture->total);
	}
	tree_destroy(made);
}

static void leaves_nothing_but_the_sum_of_a_whole_that_is_too_small(void **state)
{
	struct fixture *fixture = *state;
	struct tree *made = apply(fixture, (struct tree_shape){.least_ppm = 1000000});
	size_t count;
	const struct tree_node *nodes = tree_nodes(made, &count);

	assert_int_equal(count, 2);
	assert_int_equal(nodes[1].kind, TREE_NEUTRAL);
	tree_destroy(made);
	made = tree_create(fixture->names);
	assert_true(tree_finish(made));
	struct tree *empty = shape_apply(&(struct tree_shape){TREE_BY_WEIGHT, true, 5}, made);

	assert_whole(empty, 0);
	tree_destroy(empty);
	tree_destroy(made);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(merges_the_stacks_of_all_threads),
		CASE(orders_by_weight_then_by_name),
		CASE(sums_up_what_is_below_the_least_share),
		CASE(does_all_of_it_at_once),
		CASE(leaves_nothing_but_the_sum_of_a_whole_that_is_too_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
