#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/layer/labels.h"

#define POOL 7
#define MANY 5000 /* more than there are places in the table */

/* Handles are only compared. */
static const char handles[MANY];
#define BUFFER(i) ((const void *)(handles + (i)))

static int create(void **state)
{
	*state = labels_create();
	return *state == NULL;
}

static int destroy(void **state)
{
	labels_destroy(*state);
	return 0;
}

static void a_label_is_found_by_its_beginning(void **state)
{
	labels_allocated(*state, POOL, BUFFER(0));
	labels_begun(*state, BUFFER(0));
	labels_add(*state, BUFFER(0), "shadows");
	labels_add(*state, BUFFER(0), "frame 12");
	assert_true(labels_match(*state, BUFFER(0), "frame"));
	assert_true(labels_match(*state, BUFFER(0), "frame 12"));
	assert_true(labels_match(*state, BUFFER(0), "shad"));
	assert_false(labels_match(*state, BUFFER(0), "frame 123"));
	assert_false(labels_match(*state, BUFFER(0), "rame"));
	assert_false(labels_match(*state, BUFFER(1), "frame"));
}

static void labels_last_as_long_as_their_recording(void **state)
{
	labels_allocated(*state, POOL, BUFFER(0));
	labels_begun(*state, BUFFER(0));
	labels_add(*state, BUFFER(0), "frame");
	assert_true(labels_match(*state, BUFFER(0), "frame"));
	assert_true(labels_match(*state, BUFFER(0), "frame"));
	labels_begun(*state, BUFFER(0));
	assert_false(labels_match(*state, BUFFER(0), "frame"));
}

static void what_is_freed_is_forgotten(void **state)
{
	for (int i = 0; i < 3; i++) {
		labels_allocated(*state, POOL + (uint64_t)(i > 0), BUFFER(i));
		labels_add(*state, BUFFER(i), "frame");
	}
	labels_freed(*state, BUFFER(1));
	assert_false(labels_match(*state, BUFFER(1), "frame"));
	assert_true(labels_match(*state, BUFFER(2), "frame"));
	labels_pool_gone(*state, POOL + 1);
	assert_false(labels_match(*state, BUFFER(2), "frame"));
	assert_true(labels_match(*state, BUFFER(0), "frame"));
	labels_freed(*state, NULL);
}

static void a_handle_that_is_used_again_has_no_old_labels(void **state)
{
	labels_allocated(*state, POOL, BUFFER(0));
	labels_add(*state, BUFFER(0), "frame");
	labels_allocated(*state, POOL + 1, BUFFER(0));
	assert_false(labels_match(*state, BUFFER(0), "frame"));
	labels_add(*state, BUFFER(0), "frame");
	labels_pool_gone(*state, POOL);
	assert_true(labels_match(*state, BUFFER(0), "frame"));
}

static void secondary_command_buffers_hand_theirs_on(void **state)
{
	labels_allocated(*state, POOL, BUFFER(0));
	labels_allocated(*state, POOL, BUFFER(1));
	labels_add(*state, BUFFER(1), "one");
	labels_add(*state, BUFFER(1), "frame 3");
	labels_join(*state, BUFFER(0), BUFFER(1));
	labels_begun(*state, BUFFER(1));
	assert_true(labels_match(*state, BUFFER(0), "one"));
	assert_true(labels_match(*state, BUFFER(0), "frame"));
	labels_join(*state, BUFFER(0), BUFFER(0));
	labels_join(*state, BUFFER(0), BUFFER(2));
	labels_join(*state, BUFFER(2), BUFFER(0));
}

static void many_command_buffers_are_told_apart(void **state)
{
	char name[32];
	for (int i = 0; i < MANY; i++) {
		labels_allocated(*state, POOL, BUFFER(i));
		snprintf(name, sizeof(name), "%d.", i);
		labels_add(*state, BUFFER(i), name);
	}
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%d.", i);
		assert_true(labels_match(*state, BUFFER(i), name));
		assert_false(labels_match(*state, BUFFER((i + 1) % MANY), name));
	}
}

static void no_more_labels_are_kept_than_there_is_room_for(void **state)
{
	static char longest[LABELS_BYTES + 1];
	memset(longest, 'x', LABELS_BYTES);
	labels_allocated(*state, POOL, BUFFER(0));
	labels_add(*state, BUFFER(0), longest);
	assert_false(labels_match(*state, BUFFER(0), "x"));
	longest[LABELS_BYTES - 8] = '\0';
	labels_add(*state, BUFFER(0), longest);
	assert_true(labels_match(*state, BUFFER(0), "x"));
	labels_add(*state, BUFFER(0), "1234567");
	assert_false(labels_match(*state, BUFFER(0), "1"));
	labels_add(*state, BUFFER(0), "123456");
	assert_true(labels_match(*state, BUFFER(0), "123456"));
	labels_begun(*state, BUFFER(0));
	labels_add(*state, BUFFER(0), "frame");
	assert_true(labels_match(*state, BUFFER(0), "frame"));
}

static void nothing_is_destroyed_for_nothing(void **state)
{
	(void)state;
	labels_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_label_is_found_by_its_beginning, create, destroy),
		cmocka_unit_test_setup_teardown(labels_last_as_long_as_their_recording, create, destroy),
		cmocka_unit_test_setup_teardown(what_is_freed_is_forgotten, create, destroy),
		cmocka_unit_test_setup_teardown(
			a_handle_that_is_used_again_has_no_old_labels, create, destroy),
		cmocka_unit_test_setup_teardown(secondary_command_buffers_hand_theirs_on, create, destroy),
		cmocka_unit_test_setup_teardown(many_command_buffers_are_told_apart, create, destroy),
		cmocka_unit_test_setup_teardown(
			no_more_labels_are_kept_than_there_is_room_for, create, destroy),
		cmocka_unit_test(nothing_is_destroyed_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
