#include "analyzer/tree/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/tree/functions.h"

struct fixture {
	struct strings *names;
	struct tree *tree;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->names = strings_create();
	strings_intern(fixture->names, "unused", 6, NULL);
	fixture->tree = tree_create(fixture->names);
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

/* "thread a b/k c": names, outermost first; "/k" marks a kernel frame. */
static void add(struct fixture *fixture, const char *path, uint64_t weight)
{
	struct tree_frame frames[64];
	char copy[512];
	char *rest = NULL;
	size_t count = 0;

	strcpy(copy, path);
	for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
		char *mark = strstr(name, "/k");
		uint8_t kind = count == 0 ? TREE_THREAD : mark != NULL ? TREE_KERNEL : TREE_PROGRAM;

		if (mark != NULL) {
			*mark = '\0';
		}
		frames[count++] =
			(struct tree_frame){strings_intern(fixture->names, name, strlen(name), NULL), 0, kind};
	}
	assert_true(tree_add(fixture->tree, frames, count, weight));
}

static const char *name(const struct fixture *fixture, const struct tree_node *node)
{
	return strings_text(fixture->names, node->name).data;
}

static const struct tree_node *finished(struct fixture *fixture, size_t *count)
{
	assert_true(tree_finish(fixture->tree));
	return tree_nodes(fixture->tree, count);
}

/* A node as it should be, in preorder. */
struct expected {
	uint32_t depth;
	const char *name;
	uint64_t self, total;
	uint32_t parent, end;
};

static void assert_nodes(
	struct fixture *fixture, const struct expected *expected, size_t expected_count)
{
	size_t count;
	const struct tree_node *nodes = finished(fixture, &count);

	assert_int_equal(count, expected_count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(name(fixture, &nodes[i]), expected[i].name);
		assert_int_equal(nodes[i].depth, expected[i].depth);
		assert_int_equal(nodes[i].self, expected[i].self);
		assert_int_equal(nodes[i].total, expected[i].total);
		assert_int_equal(nodes[i].parent, expected[i].parent);
		assert_int_equal(nodes[i].end, expected[i].end);
	}
}

static void merges_paths_and_lists_them_in_preorder(void **state)
{
	static const struct expected expected[] = {
		{0, "", 0, 18, 0, 8},
		{1, "t", 0, 14, 0, 7},
		{2, "b", 0, 4, 1, 4},
		{3, "a", 4, 4, 2, 4},
		{2, "main", 3, 10, 1, 7},
		{3, "x", 5, 7, 4, 7},
		{4, "y", 2, 2, 5, 7},
		{1, "u", 4, 4, 0, 8},
	};
	struct fixture *fixture = *state;

	add(fixture, "u", 4);
	add(fixture, "t main x", 5);
	add(fixture, "t main x y", 2);
	add(fixture, "t main", 1);
	add(fixture, "t b a", 4);
	add(fixture, "t main", 2);
	assert_nodes(fixture, expected, 8);
	assert_int_equal(tree_total(fixture->tree), 18);
	assert_int_equal(tree_max_depth(fixture->tree), 4);
}

static void is_the_same_for_any_order_of_the_same_stacks(void **state)
{
	static const char *const paths[] = {"t c", "t a/k", "t a", "t a b", "t a/k b", "s z"};
	static const struct expected expected[] = {
		{0, "", 0, 6, 0, 9},
		{1, "s", 0, 1, 0, 3},
		{2, "z", 1, 1, 1, 3},
		{1, "t", 0, 5, 0, 9},
		{2, "a", 1, 2, 3, 6},
		{3, "b", 1, 1, 4, 6},
		{2, "a", 1, 2, 3, 8},
		{3, "b", 1, 1, 6, 8},
		{2, "c", 1, 1, 3, 9},
	};

	for (size_t first = 0; first < 6; first++) {
		struct fixture *fixture = *state;

		tree_destroy(fixture->tree);
		fixture->tree = tree_create(fixture->names);
		for (size_t i = 0; i < 6; i++) {
			add(fixture, paths[(first + i * 5) % 6], 1);
		}
		assert_nodes(fixture, expected, 9);
		size_t count;
		const struct tree_node *nodes = tree_nodes(fixture->tree, &count);

		assert_int_equal(nodes[4].kind, TREE_PROGRAM);
		assert_int_equal(nodes[6].kind, TREE_KERNEL);
	}
}

/* Sums worked out another way: for every node over all paths that begin with its own. */
static void gives_every_node_the_sum_of_what_is_below(void **state)
{
	struct fixture *fixture = *state;
	static const char letters[] = "abc";
	uint64_t weight = 0;
	uint64_t sum = 0;

	for (int i = 0; i < 243; i++) {
		char path[32];
		size_t len = 0;

		for (int digits = i, level = 0; level < 1 + i % 5; level++, digits /= 3) {
			path[len++] = letters[digits % 3];
			path[len++] = ' ';
		}
		path[len] = '\0';
		weight = weight * 7 % 31 + 1;
		sum += weight;
		add(fixture, path, weight);
	}
	size_t count;
	const struct tree_node *nodes = finished(fixture, &count);

	assert_int_equal(nodes[0].total, sum);
	for (size_t i = 0; i < count; i++) {
		uint64_t below = 0;

		assert_in_range(nodes[i].end, i + 1, count);
		for (size_t j = i; j < nodes[i].end; j++) {
			below += nodes[j].self;
			assert_true(j == i || nodes[j].depth > nodes[i].depth);
		}
		assert_int_equal(nodes[i].total, below);
		if (i > 0) {
			assert_true(nodes[i].parent < i && i < nodes[nodes[i].parent].end);
			assert_int_equal(nodes[i].depth, nodes[nodes[i].parent].depth + 1);
		}
	}
}

static void holds_a_stack_of_a_million_frames(void **state)
{
	struct fixture *fixture = *state;
	size_t deep = 1000000;
	struct tree_frame *frames = calloc(deep, sizeof(*frames));

	for (size_t i = 0; i < deep; i++) {
		frames[i].name = 1;
	}
	assert_true(tree_add(fixture->tree, frames, deep, 1));
	free(frames);
	size_t count;
	const struct tree_node *nodes = finished(fixture, &count);

	assert_int_equal(count, deep + 1);
	assert_int_equal(nodes[1].total, 1);
	assert_int_equal(nodes[deep].depth, deep);
	assert_int_equal(nodes[1].end, deep + 1);
}

static void is_only_a_root_when_nothing_was_added(void **state)
{
	struct fixture *fixture = *state;
	size_t count;
	const struct tree_node *nodes = finished(fixture, &count);

	assert_int_equal(count, 1);
	assert_int_equal(nodes[0].end, 1);
	assert_int_equal(tree_total(fixture->tree), 0);
}

static void stops_at_the_largest_number_instead_of_wrapping(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "t a", UINT64_MAX - 1);
	add(fixture, "t a", 5);
	add(fixture, "t b", 5);
	assert_true(tree_finish(fixture->tree));
	assert_true(tree_total(fixture->tree) == UINT64_MAX);
}

static void ranks_functions_and_counts_a_recursion_once(void **state)
{
	struct fixture *fixture = *state;
	struct functions functions;

	add(fixture, "t main f g f", 4);
	add(fixture, "t main f f", 3);
	add(fixture, "t main g", 7);
	add(fixture, "t g/k", 1);
	assert_true(tree_finish(fixture->tree));
	assert_true(functions_init(&functions, fixture->tree));
	assert_int_equal(functions.len, 4);
	static const struct {
		const char *name;
		uint64_t self, total;
	} expected[] = {{"g", 7, 11}, {"f", 7, 7}, {"g", 1, 1}, {"main", 0, 14}};

	for (size_t i = 0; i < 4; i++) {
		const struct function *item = &functions.items[i];

		assert_string_equal(strings_text(fixture->names, item->name).data, expected[i].name);
		assert_int_equal(item->self, expected[i].self);
		assert_int_equal(item->total, expected[i].total);
	}
	functions_finish(&functions);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(merges_paths_and_lists_them_in_preorder),
		CASE(is_the_same_for_any_order_of_the_same_stacks),
		CASE(gives_every_node_the_sum_of_what_is_below),
		CASE(holds_a_stack_of_a_million_frames),
		CASE(is_only_a_root_when_nothing_was_added),
		CASE(stops_at_the_largest_number_instead_of_wrapping),
		CASE(ranks_functions_and_counts_a_recursion_once),
	};

	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
