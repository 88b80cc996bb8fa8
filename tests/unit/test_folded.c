#include "analyzer/export/folded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct strings *names;
	struct tree *tree;
	struct buffer out;
	size_t stacks;
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
	buffer_finish(&fixture->out);
	free(fixture);
	return 0;
}

static struct tree_frame frame(struct fixture *fixture, const char *name, uint8_t kind)
{
	return (struct tree_frame){strings_intern(fixture->names, name, strlen(name), NULL), 0, kind};
}

/* The thread "t" and up to three frames. */
static void add(
	struct fixture *fixture, uint64_t weight, const char *a, const char *b, const char *c)
{
	struct tree_frame frames[4] = {frame(fixture, "t", TREE_THREAD)};
	const char *names[] = {a, b, c};
	size_t count = 1;

	for (size_t i = 0; i < 3 && names[i] != NULL; i++) {
		frames[count++] = frame(fixture, names[i], TREE_PROGRAM);
	}
	assert_true(tree_add(fixture->tree, frames, count, weight));
}

static const char *written(struct fixture *fixture)
{
	assert_true(tree_finish(fixture->tree));
	assert_true(folded_write(&fixture->out, fixture->tree, &fixture->stacks));
	assert_true(buffer_byte(&fixture->out, 0));
	return (const char *)fixture->out.data;
}

static void writes_one_sorted_line_for_each_stack_that_was_a_leaf(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 3, "main", "work", NULL);
	add(fixture, 2, "main", "idle", NULL);
	add(fixture, 1, "main", "work", "deep");
	assert_string_equal(written(fixture), "t;main;idle 2\nt;main;work 3\nt;main;work;deep 1\n");
	assert_int_equal(fixture->stacks, 3);
}

static void sorts_by_the_bytes_of_whole_lines(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 50, "f", NULL, NULL);
	add(fixture, 3, "f (x)", NULL, NULL);
	add(fixture, 3, "f 4x", NULL, NULL);
	add(fixture, 3, "f 6x", NULL, NULL);
	add(fixture, 3, "f!", NULL, NULL);
	assert_string_equal(written(fixture), "t;f (x) 3\nt;f 4x 3\nt;f 50\nt;f 6x 3\nt;f! 3\n");
}

static void writes_names_that_every_reader_takes_alike(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 1, "[u8; 8]", NULL, NULL);
	add(fixture, 1, "line\nend\r", NULL, NULL);
	add(fixture, 1, "\x1b[31m\x7f", NULL, NULL);
	add(fixture, 1, "bad\xffutf\xc3", NULL, NULL);
	add(fixture, 1, "", "  ", "\xc2\xa0 x \xe3\x80\x80");
	add(fixture, 1, "ends in 2", NULL, NULL);
	add(fixture, 1, "\xc3\xa9t\xc3\xa9", NULL, NULL);
	assert_string_equal(written(fixture), "t;[u8: 8] 1\n"
										  "t;[unknown];[unknown];x 1\n"
										  "t;bad\xef\xbf\xbdutf\xef\xbf\xbd 1\n"
										  "t;ends in 2_ 1\n"
										  "t;line end 1\n"
										  "t;\xc3\xa9t\xc3\xa9 1\n"
										  "t;\xef\xbf\xbd[31m\xef\xbf\xbd 1\n");
}

static void adds_stacks_that_become_equal(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 1, "a;b", NULL, NULL);
	add(fixture, 2, "a:b", NULL, NULL);
	add(fixture, 4, " a:b", NULL, NULL);
	assert_string_equal(written(fixture), "t;a:b 7\n");
	assert_int_equal(fixture->stacks, 1);
}

static void marks_frames_of_the_kernel(void **state)
{
	struct fixture *fixture = *state;
	const struct tree_frame frames[] = {frame(fixture, "#1 worker 3", TREE_THREAD),
		frame(fixture, "read", TREE_PROGRAM), frame(fixture, "read", TREE_KERNEL)};

	assert_true(tree_add(fixture->tree, frames, 3, 9));
	assert_true(tree_add(fixture->tree, frames, 1, 1));
	assert_string_equal(written(fixture), "_1 worker 3;read;read_[k] 9\n_1 worker 3_ 1\n");
}

static void writes_nothing_for_an_empty_tree(void **state)
{
	struct fixture *fixture = *state;

	assert_string_equal(written(fixture), "");
	assert_int_equal(fixture->stacks, 0);
}

/* Frames f000000 … of 100 bytes each: 2000 of them are 200 KB. */
static void elides_the_middle_of_a_line_that_is_too_long(void **state)
{
	struct fixture *fixture = *state;
	struct tree_frame frames[2000];
	unsigned elided = 0;
	unsigned first = 0;
	unsigned last = 0;

	for (unsigned i = 0; i < 2000; i++) {
		char name[128];

		snprintf(name, sizeof(name), "f%06u%093d", i, 0);
		frames[i] = frame(fixture, name, i == 0 ? TREE_THREAD : TREE_PROGRAM);
	}
	assert_true(tree_add(fixture->tree, frames, 2000, 12345));
	const char *text = written(fixture);
	const char *gap = strstr(text, ";[... ");

	assert_true(strlen(text) < 65536);
	assert_true(strlen(text) > 60000);
	assert_non_null(gap);
	assert_int_equal(sscanf(gap - 100, "f%6u", &first), 1);
	assert_int_equal(sscanf(gap, ";[... %u frames elided]", &elided), 1);
	assert_int_equal(sscanf(strchr(gap + 1, ';'), ";f%6u", &last), 1);
	assert_int_equal(first + elided + 1, last);
	assert_memory_equal(text, "f000000", 7);
	assert_non_null(strstr(text, ";f001999"));
	assert_string_equal(strrchr(text, ' '), " 12345\n");
}

static void cuts_a_name_that_is_longer_than_a_line(void **state)
{
	struct fixture *fixture = *state;
	char *name = malloc(100001);

	memset(name, 'x', 100000);
	name[100000] = '\0';
	for (size_t i = 0; i < 99999; i += 3) {
		memcpy(name + i, "\xe2\x82\xac", 3);
	}
	add(fixture, 1, name, "leaf", NULL);
	free(name);
	const char *text = written(fixture);

	assert_true(strlen(text) < 65536);
	assert_string_equal(text + strlen(text) - 11, "\xe2\x82\xac;leaf 1\n");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(writes_one_sorted_line_for_each_stack_that_was_a_leaf),
		CASE(sorts_by_the_bytes_of_whole_lines),
		CASE(writes_names_that_every_reader_takes_alike),
		CASE(adds_stacks_that_become_equal),
		CASE(marks_frames_of_the_kernel),
		CASE(writes_nothing_for_an_empty_tree),
		CASE(elides_the_middle_of_a_line_that_is_too_long),
		CASE(cuts_a_name_that_is_longer_than_a_line),
	};

	return cmocka_run_group_tests_name("folded", tests, NULL, NULL);
}
