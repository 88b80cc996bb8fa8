#include "unwind/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/made_image.h"

static uint8_t bytes[MADE_BYTES];

struct fixture {
	uint64_t states;
	struct cfi_reader reader;
	struct cfi *cfi;
	struct unwind_space space;
};

static int setup(void **state)
{
	static struct fixture fixture;
	const struct made_image made = {0};
	struct error err = {0};

	fixture = (struct fixture){0};
	made_image_write(&made, bytes);
	struct image *image = image_open_memory(bytes, sizeof(bytes), &err);

	assert_true(image != NULL && cfi_reader_init(&fixture.reader));
	fixture.cfi = cfi_create(image, &fixture.reader);
	image_release(image);
	unwind_space_init(&fixture.space, &fixture.states);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	unwind_space_finish(&fixture->space);
	cfi_release(fixture->cfi);
	cfi_reader_finish(&fixture->reader);
	return 0;
}

/* The image's code at start, which is MADE_CODE_BYTES long. */
static struct unwind_mapping image_at(const struct fixture *fixture, uint64_t start)
{
	return (struct unwind_mapping){.start = start,
		.length = MADE_CODE_BYTES,
		.file_offset = MADE_CODE,
		.is_executable = true,
		.cfi = fixture->cfi};
}

static void put(struct unwind_space *space, struct unwind_mapping mapping)
{
	assert_true(unwind_space_put(space, &mapping));
}

static void expect(const struct unwind_space *space, uint64_t address, uint64_t start, uint64_t end)
{
	const struct unwind_range *range = unwind_space_find(space, address);

	if (start == 0) {
		assert_null(range);
		return;
	}
	assert_non_null(range);
	assert_int_equal(range->start, start);
	assert_int_equal(range->end, end);
}

static void code_is_found_where_it_was_put(void **state)
{
	struct fixture *fixture = *state;

	put(&fixture->space, image_at(fixture, 0x700000));
	put(&fixture->space, image_at(fixture, 0x500000));
	expect(&fixture->space, 0x4fffff, 0, 0);
	expect(&fixture->space, 0x500000, 0x500000, 0x502000);
	expect(&fixture->space, 0x501fff, 0x500000, 0x502000);
	expect(&fixture->space, 0x502000, 0, 0);
	expect(&fixture->space, 0x700001, 0x700000, 0x702000);
	assert_int_equal(unwind_space_find(&fixture->space, 0x700000)->bias, 0x700000 - MADE_CODE);
}

static void removing_cuts_and_splits(void **state)
{
	struct fixture *fixture = *state;

	put(&fixture->space, image_at(fixture, 0x500000));
	put(&fixture->space, image_at(fixture, 0x502000));
	assert_true(unwind_space_remove(&fixture->space, 0x500800, 0x100));
	expect(&fixture->space, 0x5007ff, 0x500000, 0x500800);
	expect(&fixture->space, 0x500800, 0, 0);
	expect(&fixture->space, 0x500900, 0x500900, 0x502000);
	assert_int_equal(unwind_space_find(&fixture->space, 0x500900)->bias, 0x500000 - MADE_CODE);
	assert_true(unwind_space_remove(&fixture->space, 0x501000, 0x1800));
	expect(&fixture->space, 0x500fff, 0x500900, 0x501000);
	expect(&fixture->space, 0x502800, 0x502800, 0x504000);
	assert_true(unwind_space_remove(&fixture->space, 0x500000, UINT64_MAX));
	assert_int_equal(fixture->space.ranges.len, 0);
}

static void a_state_changes_only_when_code_gets_another_meaning(void **state)
{
	struct fixture *fixture = *state;
	uint64_t before = fixture->space.state;

	put(&fixture->space, image_at(fixture, 0x500000));
	put(&fixture->space, image_at(fixture, 0x600000));
	put(&fixture->space, image_at(fixture, 0x500000)); /* told again */
	put(&fixture->space, (struct unwind_mapping){.start = 0x800000, .length = 0x1000});
	assert_int_equal(fixture->space.state, before);
	put(&fixture->space,
		(struct unwind_mapping){.start = 0x501000, .length = 0x1000, .is_executable = true});
	assert_int_not_equal(fixture->space.state, before);
	before = fixture->space.state;
	/* data where code was */
	put(&fixture->space, (struct unwind_mapping){.start = 0x600000, .length = 0x1000});
	assert_int_not_equal(fixture->space.state, before);
	expect(&fixture->space, 0x600000, 0, 0);
	before = fixture->space.state;
	unwind_space_clear(&fixture->space);
	assert_int_not_equal(fixture->space.state, before);
}

static void a_copy_shares_its_state_until_one_of_both_changes(void **state)
{
	struct fixture *fixture = *state;
	struct unwind_space copy;

	put(&fixture->space, image_at(fixture, 0x500000));
	unwind_space_init(&copy, &fixture->states);
	assert_true(unwind_space_copy(&copy, &fixture->space));
	assert_int_equal(copy.state, fixture->space.state);
	expect(&copy, 0x500000, 0x500000, 0x502000);
	/* even code where none was: the other may put something else there */
	put(&fixture->space, image_at(fixture, 0x600000));
	assert_int_not_equal(copy.state, fixture->space.state);
	put(&copy, (struct unwind_mapping){.start = 0x600000, .length = 0x1000, .is_executable = true});
	assert_int_not_equal(copy.state, fixture->space.state);
	assert_null(unwind_space_find(&copy, 0x600000)->cfi);
	assert_non_null(unwind_space_find(&fixture->space, 0x600000)->cfi);
	unwind_space_finish(&copy);
	expect(&fixture->space, 0x500000, 0x500000, 0x502000);
}

static void memory_without_a_file_is_not_the_image_that_it_replaces(void **state)
{
	struct fixture *fixture = *state;

	put(&fixture->space, image_at(fixture, 0x500000));
	put(&fixture->space,
		(struct unwind_mapping){.start = 0x500800, .length = 0x1000, .is_executable = true});
	assert_null(unwind_space_find(&fixture->space, 0x500900)->cfi);
	assert_ptr_equal(unwind_space_find(&fixture->space, 0x500100)->cfi, fixture->cfi);
	/* whoever knows better says so */
	struct unwind_mapping moved = image_at(fixture, 0x500000);

	put(&fixture->space, moved);
	assert_ptr_equal(unwind_space_find(&fixture->space, 0x500900)->cfi, fixture->cfi);
}

static void a_mapping_that_shows_nothing_of_its_image_is_code_without_a_file(void **state)
{
	struct fixture *fixture = *state;
	struct unwind_mapping mapping = image_at(fixture, 0x500000);

	mapping.file_offset = 0x20000000;
	put(&fixture->space, mapping);
	assert_null(unwind_space_find(&fixture->space, 0x500000)->cfi);
}

/* Against a plain array that says for each page which put came last. */
static void many_changes_leave_what_the_last_of_each_page_said(void **state)
{
	struct fixture *fixture = *state;
	enum { PAGES = 64 };
	uint32_t bias[PAGES], seed = 1; /* 1: nothing there */

	for (size_t page = 0; page < PAGES; page++) {
		bias[page] = 1;
	}
	for (uint32_t round = 1; round < 2000; round++) {
		seed = seed * 1103515245 + 12345;
		uint32_t first = seed >> 8 & (PAGES - 1), count = 1 + (seed >> 16) % (PAGES - first);
		bool is_removed = (seed >> 28) % 4 == 0;
		struct unwind_mapping mapping = image_at(fixture, first * 0x1000ull);

		mapping.length = count * 0x1000ull;
		mapping.file_offset = MADE_CODE + round % 2 * 0x1000;
		if (is_removed) {
			assert_true(unwind_space_remove(&fixture->space, mapping.start, mapping.length));
		} else {
			put(&fixture->space, mapping);
		}
		for (uint32_t page = first; page < first + count; page++) {
			bias[page] = is_removed ? 1 : (uint32_t)(mapping.start - mapping.file_offset);
		}
		for (uint32_t page = 0; page < PAGES; page++) {
			const struct unwind_range *range =
				unwind_space_find(&fixture->space, page * 0x1000ull + 5);

			assert_int_equal(range == NULL ? 1 : (uint32_t)range->bias, bias[page]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(code_is_found_where_it_was_put, setup, teardown),
		cmocka_unit_test_setup_teardown(removing_cuts_and_splits, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_state_changes_only_when_code_gets_another_meaning, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_copy_shares_its_state_until_one_of_both_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			memory_without_a_file_is_not_the_image_that_it_replaces, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_mapping_that_shows_nothing_of_its_image_is_code_without_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			many_changes_leave_what_the_last_of_each_page_said, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
