#include "analyzer/export/svg_legend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct strings *names;
	struct tree *tree;
	struct svg_legend legend;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->names = strings_create();
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

static uint32_t id(struct fixture *fixture, const char *text)
{
	return text == NULL ? 0 : strings_intern(fixture->names, text, strlen(text), NULL);
}

/* A stack of a thread and one frame. */
static void add(
	struct fixture *fixture, const char *name, uint8_t kind, const char *image, uint64_t weight)
{
	const struct tree_frame frames[] = {
		{id(fixture, "thread"), 0, TREE_THREAD}, {id(fixture, name), id(fixture, image), kind}};

	assert_true(tree_add(fixture->tree, frames, 2, weight));
}

static void make(struct fixture *fixture, enum svg_colors colors)
{
	assert_true(tree_finish(fixture->tree));
	assert_true(svg_legend_init(&fixture->legend, fixture->tree, colors));
}

static void assert_item(const struct fixture *fixture, size_t i, const char *name, uint64_t self)
{
	assert_true(i < fixture->legend.count);
	assert_string_equal(fixture->legend.items[i].name.data, name);
	assert_int_equal(fixture->legend.items[i].self, self);
}

static uint32_t colour(struct fixture *fixture, const char *name, uint8_t kind, const char *image)
{
	return svg_legend_colour(&fixture->legend, kind, bytes_text_of(name), id(fixture, image)).light;
}

static void tells_the_kinds_that_occur_with_their_own_weight(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "a", TREE_JIT, NULL, 3);
	add(fixture, "b", TREE_PROGRAM, "p", 5);
	add(fixture, "c", TREE_PROGRAM, "q", 6);
	make(fixture, SVG_COLORS_KIND);
	assert_int_equal(fixture->legend.count, 3);
	assert_item(fixture, 0, "thread", 0);
	assert_item(fixture, 1, "program", 11);
	assert_item(fixture, 2, "JIT", 3);
	assert_int_equal(
		colour(fixture, "f", TREE_PROGRAM, "p"), colour(fixture, "f", TREE_PROGRAM, "q"));
	assert_int_not_equal(
		colour(fixture, "f", TREE_PROGRAM, "p"), colour(fixture, "f", TREE_JIT, "p"));
}

static void gives_the_heaviest_files_a_hue_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	char image[16], name[16];
	uint32_t seen[8];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(image, sizeof(image), "lib%u.so", i);
		snprintf(name, sizeof(name), "f%u", i);
		add(fixture, name, i % 2 ? TREE_PROGRAM : TREE_LIBRARY, image, 10 + i);
	}
	add(fixture, "write", TREE_KERNEL, "kernel", 100);
	make(fixture, SVG_COLORS_IMAGE);
	assert_int_equal(fixture->legend.count, 8);
	assert_item(fixture, 0, "lib7.so", 17);
	assert_item(fixture, 4, "lib3.so", 13);
	assert_item(fixture, 5, "other files", 10 + 11 + 12);
	assert_item(fixture, 6, "thread", 0);
	assert_item(fixture, 7, "kernel", 100);
	for (unsigned i = 0; i < 8; i++) {
		snprintf(image, sizeof(image), "lib%u.so", i);
		seen[i] = colour(fixture, "anything", TREE_PROGRAM, image);
		assert_int_equal(seen[i], colour(fixture, "other", TREE_LIBRARY, image));
		for (unsigned j = 0; j < i; j++) {
			assert_true((seen[i] == seen[j]) == (i < 3));
		}
	}
	assert_int_equal(colour(fixture, "write", TREE_KERNEL, "kernel"),
		svg_palette_kind(TREE_KERNEL, svg_palette_shade(bytes_text_of("write"))).light);
}

static void colours_of_names_need_no_legend(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, "a", TREE_PROGRAM, "p", 3);
	make(fixture, SVG_COLORS_NAME);
	assert_int_equal(fixture->legend.count, 0);
	assert_int_equal(
		colour(fixture, "a", TREE_KERNEL, NULL), colour(fixture, "a", TREE_PROGRAM, "p"));
	assert_int_not_equal(
		colour(fixture, "a", TREE_KERNEL, NULL), colour(fixture, "b", TREE_KERNEL, NULL));
	assert_int_equal(
		colour(fixture, "all", TREE_NEUTRAL, NULL), svg_palette_kind(TREE_NEUTRAL, 0).light);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_the_kinds_that_occur_with_their_own_weight),
		CASE(gives_the_heaviest_files_a_hue_of_their_own),
		CASE(colours_of_names_need_no_legend),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
