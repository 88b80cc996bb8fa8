#include "analyzer/export/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/picture_samples.h"

/* The picture of the cases that have no other: drawn and read once. */
static int draw_plain(void **state)
{
	picture_set_up(state);
	picture_add_plain(*state);
	picture_write(*state, "plain", "a <subtitle>");
	return 0;
}

static void embeds_every_frame_with_its_weights_kind_and_image(void **state)
{
	struct picture *picture = *state;
	picture_read(picture);
	picture_assert_fact(picture, "head 1 8 8");
	picture_assert_fact(picture, "title \"plain\"");
	picture_assert_fact(picture, "subtitle \"a\\u0020<subtitle>\"");
	assert_int_equal(picture_count_facts(picture, "data"), 8);
	picture_assert_fact(picture, "data 0 400 0 - \"\" \"all\"");
	picture_assert_fact(picture, "data 1 200 0 thread \"\" \"main\"");
	picture_assert_fact(picture, "data 2 150 30 program \"\" \"compute\"");
	picture_assert_fact(picture, "data 3 120 120 program \"\" \"multiply\"");
	picture_assert_fact(picture, "data 2 50 50 program \"\" \"read\"");
	picture_assert_fact(picture, "data 1 200 0 thread \"\" \"worker\"");
	picture_assert_fact(picture, "data 2 200 0 library \"/lib/libc.so.6\" \"write\"");
	picture_assert_fact(picture, "data 3 200 200 kernel \"\" \"vfs_write\"");
}

static void draws_frames_as_wide_as_their_share_above_their_parents(void **state)
{
	struct picture *picture = *state;
	static const struct {
		const char *title;
		double x, width;
		int row;
	} expected[] = {{"all (400 samples, 100.00%)", 0, 1, 0},
		{"main (200 samples, 50.00%)", 0, .5, 1}, {"compute (150 samples, 37.50%)", 0, .375, 2},
		{"multiply (120 samples, 30.00%)", 0, .3, 3}, {"read (50 samples, 12.50%)", .375, .125, 2},
		{"worker (200 samples, 50.00%)", .5, .5, 1}, {"write (200 samples, 50.00%)", .5, .5, 2},
		{"vfs_write (200 samples, 50.00%)", .5, .5, 3}};
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "rect"), 8);
	const char *line = strstr(picture->facts, "\nrect ");
	double left = 0, span = 0, top = 0, height = 0;
	for (size_t i = 0; i < 8; i++, line = strchr(line + 1, '\n')) {
		double x, y, width;
		char title[64];
		assert_int_equal(sscanf(line, " rect %lf %lf %lf %*s %63s", &x, &y, &width, title), 4);
		left = i == 0 ? x : left;
		span = i == 0 ? width : span;
		top = i == 0 ? y : top;
		height = i == 1 ? y - top : height;
		assert_float_equal(x - left, expected[i].x * span, .02);
		assert_float_equal(width, expected[i].width * span, .02);
		assert_float_equal(y - top, expected[i].row * height, .01);
		assert_memory_equal(title + 1, expected[i].title, strcspn(expected[i].title, " "));
	}
	assert_true(span > 1000 && height > 10);
}

static void kernel_frames_look_unlike_the_program_s(void **state)
{
	struct picture *picture = *state;
	char fill[2][16];
	picture_read(picture);
	static const char *const names[] = {"\"write\\u0020", "\"vfs_write\\u0020"};
	for (size_t i = 0; i < 2; i++) {
		const char *at = strstr(picture->facts, names[i]);
		assert_non_null(at);
		snprintf(fill[i], sizeof(fill[i]), "%.7s", at - 8);
		assert_int_equal(fill[i][0], '#');
	}
	/* Warm: more red than blue; the kernel's: more blue than red. */
	assert_true(strncmp(fill[0] + 1, fill[0] + 5, 2) > 0);
	assert_true(strncmp(fill[1] + 1, fill[1] + 5, 2) < 0);
}

static void says_what_its_colours_mean(void **state)
{
	struct picture *picture = *state;
	char line[64];
	static const struct {
		uint8_t kind;
		const char *name;
		unsigned self;
	} expected[] = {{TREE_THREAD, "thread", 0}, {TREE_PROGRAM, "program", 200},
		{TREE_LIBRARY, "library", 0}, {TREE_KERNEL, "kernel", 200}};
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "legend"), 4);
	for (size_t i = 0; i < 4; i++) {
		struct svg_colour colour = svg_palette_kind(expected[i].kind, SVG_SHADES / 2);
		snprintf(line, sizeof(line), "legend \"%s\" #%06x #%06x %u", expected[i].name,
			(unsigned)colour.light, (unsigned)colour.dark, expected[i].self);
		picture_assert_fact(picture, line);
	}
	picture_assert_fact(picture, "text \"program\\u002050.00%\"");
	picture_assert_fact(picture, "text \"library\"");
}

static void is_well_formed_whatever_bytes_a_name_holds(void **state)
{
	struct picture *picture = *state;
	picture_torture(picture);
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "data"), 2 + 256 + 1 + PICTURE_TORTURES);
	picture_assert_fact(picture, "title \"]]></title><script>alert(1)</script>\\ufffd\\u001b\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"a\\u0000z\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"a\\u001bz\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"a\\\"z\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"a\\ufffdz\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"a\\u007fz\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"<script>alert(1)</script>\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"\\u2028line\\u2029\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"\\ufffe\\uffff\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"\\ud83d\\udd25\"");
	picture_assert_fact(picture, "data 2 1 1 program \"\" \"\\\\u0041\\\\\"");
	picture_assert_fact(picture, "text \"\\\"'<&>\\ufffd\\ufffd\"");
	assert_non_null(strstr(picture->facts, "\"a\\ufffdz\\u0020(1\\u0020sample,"));
	assert_non_null(strstr(picture->facts, "\"a\\nz\\u0020(1\\u0020sample,"));
}

/* U+0085, U+009B (what terminals take for an escape), U+202E and U+2066; the data keeps them, for copying. */
static void draws_no_controls_and_nothing_that_turns_text(void **state)
{
	struct picture *picture = *state;
	picture_add(picture, "main;a\xc2\x85\xc2\x9b\xc2\xa0\xe2\x80\xae\xe2\x81\xa6z", 2);
	picture_write(picture, "a\xe2\x80\xae-", NULL);
	picture_read(picture);
	picture_assert_fact(
		picture, "data 2 2 2 program \"\" \"a\\u0085\\u009b\\u00a0\\u202e\\u2066z\"");
	picture_assert_fact(picture, "text \"a\\ufffd-\"");
	assert_non_null(strstr(picture->facts, "\"a\\ufffd\\ufffd\\u00a0\\ufffd\\ufffdz\\u0020(2"));
	assert_false(picture_holds(picture, "\xc2\x9b"));
}

static void is_well_formed_whatever_bytes_a_file_s_name_holds(void **state)
{
	struct picture *picture = *state;
	picture_torture_images(picture);
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "data"), 2 + 256 + 1 + PICTURE_TORTURES);
	picture_assert_fact(picture, "note \"<script>alert(1)</script>]]>\\ufffd\\u001b\"");
	assert_int_equal(picture_count_facts(picture, "legend"), 7);
	assert_false(picture_holds(picture, "<script>alert"));
}

static void holds_no_markup_that_came_from_a_name(void **state)
{
	struct picture *picture = *state;
	picture_torture(picture);
	assert_false(picture_holds(picture, "<script>alert"));
	assert_false(picture_holds(picture, "</title></svg>"));
	assert_false(picture_holds(picture, "onload=\""));
	assert_false(picture_holds(picture, "onload='"));
	assert_false(picture_holds(picture, "&nbsp;"));
	assert_false(picture_holds(picture, "\xe2\x80\xa8"));
}

static void one_is_not_told_as_many_and_little_not_as_nothing(void **state)
{
	struct picture *picture = *state;
	picture_add(picture, "main;rare", 1);
	picture_add(picture, "main;often", 39999);
	picture_write(picture, "one", NULL);
	picture_read(picture);
	assert_non_null(strstr(picture->facts, "\"rare\\u0020(1\\u0020sample,\\u0020<0.01%)\""));
	assert_non_null(
		strstr(picture->facts, "\"often\\u0020(39,999\\u0020samples,\\u0020100.00%)\""));
}

static void shortens_a_long_name_in_the_picture_and_keeps_it_in_the_data(void **state)
{
	struct picture *picture = *state;
	char name[5001];
	memset(name, 'n', 5000);
	name[5000] = '\0';
	picture_add(picture, name, 1);
	picture_write(picture, "long", NULL);
	picture_read(picture);
	assert_true(picture_holds(picture, name));
	const char *rect = strstr(picture->facts, "rect ");
	assert_non_null(rect);
	rect = strstr(rect, "\"nnn");
	assert_non_null(rect);
	assert_int_equal(strspn(rect + 1, "n"), 199);
	assert_int_equal(strncmp(rect + 200, "\\u2026", 6), 0);
}

static void asks_for_nothing_from_outside(void **state)
{
	struct picture *picture = *state;
	const char *text = (const char *)picture->svg.data;
	size_t addresses = 0;
	for (size_t i = 0; i + 3 < picture->svg.len; i++) {
		if (memcmp(text + i, "://", 3) == 0) {
			addresses++;
			assert_true(i > 5 && (memcmp(text + i + 3, "www.w3.org/2000/svg\"", 20) == 0 ||
									 memcmp(text + i + 3, "www.w3.org/1999/xhtml\"", 22) == 0));
		}
	}
	assert_true(addresses > 0);
	static const char *const forbidden[] = {
		"href", "@import", "url(", "fetch(", "XMLHttpRequest", "innerHTML", "eval(", " src="};
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		assert_false(picture_holds(picture, forbidden[i]));
	}
}

static void says_no_samples_when_there_are_none(void **state)
{
	struct picture *picture = *state;
	picture_write(picture, "nothing", "the process was idle");
	picture_read(picture);
	picture_assert_fact(picture, "text \"no\\u0020samples\"");
	picture_assert_fact(picture, "data 0 0 0 - \"\" \"all\"");
	assert_int_equal(picture_count_facts(picture, "rect"), 0);
}

static void gives_equal_bytes_for_equal_profiles(void **state)
{
	struct picture *picture = *state;
	void *other_state;
	assert_int_equal(picture_set_up(&other_state), 0);
	struct picture *other = other_state;
	picture_add(picture, "main;a;b", 1);
	picture_add(picture, "main;c", 2);
	picture_add(other, "main;c", 1);
	picture_add(other, "main;a;b", 1);
	picture_add(other, "main;c", 1);
	picture_write(picture, "same", NULL);
	picture_write(other, "same", NULL);
	assert_int_equal(picture->svg.len, other->svg.len);
	assert_memory_equal(picture->svg.data, other->svg.data, other->svg.len);
	assert_int_equal(picture_tear_down(&other_state), 0);
}

static void appends_behind_what_the_buffer_holds(void **state)
{
	struct picture *picture = *state;
	assert_true(buffer_text(&picture->svg, "before"));
	picture_write(picture, "nothing", NULL);
	assert_memory_equal(picture->svg.data, "before<?xml ", 12);
	assert_memory_equal(picture->svg.data + picture->svg.len - 7, "</svg>\n", 7);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, picture_set_up, picture_tear_down)

/* test_svg --write FOLDER: the samples, for tools/verify-svg. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embeds_every_frame_with_its_weights_kind_and_image),
		cmocka_unit_test(draws_frames_as_wide_as_their_share_above_their_parents),
		cmocka_unit_test(kernel_frames_look_unlike_the_program_s),
		cmocka_unit_test(says_what_its_colours_mean),
		cmocka_unit_test(asks_for_nothing_from_outside),
		CASE(is_well_formed_whatever_bytes_a_name_holds),
		CASE(draws_no_controls_and_nothing_that_turns_text),
		CASE(is_well_formed_whatever_bytes_a_file_s_name_holds),
		CASE(holds_no_markup_that_came_from_a_name),
		CASE(one_is_not_told_as_many_and_little_not_as_nothing),
		CASE(shortens_a_long_name_in_the_picture_and_keeps_it_in_the_data),
		CASE(says_no_samples_when_there_are_none),
		CASE(gives_equal_bytes_for_equal_profiles),
		CASE(appends_behind_what_the_buffer_holds),
	};
	if (argc == 3 && strcmp(argv[1], "--write") == 0) {
		return picture_write_samples(argv[2]);
	}
	return cmocka_run_group_tests(tests, draw_plain, picture_tear_down);
}
