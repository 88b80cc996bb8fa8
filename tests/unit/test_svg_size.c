#include "analyzer/export/svg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/picture_samples.h"

static void draws_the_widest_frames_and_says_how_many_are_missing(void **state)
{
	struct picture *picture = *state;
	char stack[32];
	for (unsigned i = 0; i < 7000; i++) {
		snprintf(stack, sizeof(stack), "main;leaf_%u", i);
		picture_add(picture, stack, i < 1500 ? 2 : 1);
	}
	picture_write(picture, "wide", NULL);
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "data"), 7002);
	assert_int_equal(picture_count_facts(picture, "rect"), 2000);
	assert_non_null(
		strstr(picture->facts, "text \"5,002\\u0020narrow\\u0020frames\\u0020not\\u0020drawn."));
	assert_non_null(strstr(picture->facts, "\"leaf_0\\u0020(2"));
	assert_non_null(strstr(picture->facts, "\"leaf_1499\\u0020(2"));
}

static void draws_a_recursion_of_5000(void **state)
{
	struct picture *picture = *state;
	picture_deep(picture);
	picture_read(picture);
	assert_int_equal(picture_count_facts(picture, "data"), 5001);
	assert_int_equal(picture_count_facts(picture, "rect"), 2000);
	picture_assert_fact(picture, "data 1 8 0 program \"\" \"odd\"");
	picture_assert_fact(picture, "data 4000 8 1 program \"\" \"even\"");
	picture_assert_fact(picture, "data 5000 7 7 program \"\" \"even\"");
}

static void sums_up_small_frames_when_the_file_would_be_too_large(void **state)
{
	struct picture *picture = *state;
	picture_large(picture, 30000);
	uint64_t total = tree_total(picture->tree);
	picture_read(picture);
	unsigned long long bytes, cut, all, frames, embedded, smaller = 0;
	assert_int_equal(
		sscanf(picture->facts, "file %llu\nhead %llu %llu %llu\n", &bytes, &cut, &all, &frames), 4);
	assert_true(bytes <= 4 * 1024 * 1024 && bytes > 2 * 1024 * 1024);
	assert_int_equal(all, 30012);
	assert_true(cut > 1 && frames < all && frames > 10000);
	assert_int_equal(
		sscanf(strstr(picture->facts, "\ndata "), "\ndata 0 %llu 0 - \"\" \"all\"", &embedded), 1);
	assert_int_equal(embedded, total);
	/* By strchr and strtoull: strstr and sscanf measure all that follows, each time. */
	for (const char *at = picture->facts; *at != '\0'; at = strchr(at, '\n') + 1) {
		if (strncmp(at, "data ", 5) == 0) {
			char *end = (char *)at + 5;
			unsigned long long depth = strtoull(end, &end, 10), weight = strtoull(end, &end, 10);
			strtoull(end, &end, 10);
			bool is_sum = strncmp(end, " - ", 3) == 0;
			assert_true(is_sum || weight >= cut);
			smaller += is_sum && depth == 3;
		}
	}
	assert_int_equal(smaller, 10);
	assert_non_null(strstr(picture->facts, "\"(smaller\\u0020frames)\""));
}

static void sums_up_what_is_below_the_share_that_was_asked_for(void **state)
{
	struct picture *picture = *state;
	picture->shape.least_ppm = 150000;
	picture_add(picture, "main;a;x", 60);
	picture_add(picture, "main;a;y", 5);
	picture_add(picture, "main;a;z;deep", 6);
	picture_add(picture, "main;b", 29);
	picture_write(picture, "share", NULL);
	picture_read(picture);
	picture_assert_fact(picture, "head 15 8 6");
	picture_assert_fact(picture, "data 3 60 60 program \"\" \"x\"");
	picture_assert_fact(picture, "data 3 11 11 - \"\" \"(smaller\\u0020frames)\"");
	assert_int_equal(picture_count_facts(picture, "data"), 6);
	assert_int_equal(picture_count_facts(picture, "rect"), 6);
	assert_non_null(strstr(picture->facts,
		"text \"3\\u0020frames\\u0020below\\u002015\\u0020samples\\u0020summed\\u0020up."));
}

static void stays_below_its_limit_when_names_alone_exceed_it(void **state)
{
	struct picture *picture = *state;
	static char name[60001];
	for (unsigned i = 0; i < 200; i++) {
		memset(name, 'a', 60000);
		int len = snprintf(name, 60000, "n%u", i);
		name[len] = '_';
		picture_add(picture, name, 1);
	}
	picture_write(picture, "names", NULL);
	picture_read(picture);
	assert_true(picture->svg.len <= 4 * 1024 * 1024);
	picture_assert_fact(picture, "head 1 201 201");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, picture_set_up, picture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(draws_the_widest_frames_and_says_how_many_are_missing),
		CASE(draws_a_recursion_of_5000),
		CASE(sums_up_small_frames_when_the_file_would_be_too_large),
		CASE(sums_up_what_is_below_the_share_that_was_asked_for),
		CASE(stays_below_its_limit_when_names_alone_exceed_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
