#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "server/history.h"

static void add(struct history *history, uint64_t seq, size_t len)
{
	char *line = malloc(len);
	assert_non_null(line);
	memset(line, 'a', len);
	char key[] = "b";
	struct history_event event = {
		.seq = seq, .name = "Event", .build_key = key, .line = line, .len = len};
	history_add(history, &event);
	free(line);
}

static void assert_keeps(const struct history *history, uint64_t first, uint64_t last)
{
	size_t index = 0;
	for (uint64_t seq = first; seq <= last; seq++) {
		const struct history_event *event = history_at(history, index++);
		assert_non_null(event);
		assert_true(event->seq == seq);
	}
	assert_null(history_at(history, index));
}

static void an_empty_one_reaches_everything(void **state)
{
	(void)state;
	struct history history = {0};
	assert_null(history_at(&history, 0));
	assert_true(history_reaches(&history, 0));
	history_finish(&history);
}

static void keeps_copies_of_what_an_event_says(void **state)
{
	(void)state;
	struct history history = {0};
	char build[] = "build", capture[] = "capture", line[] = "{}\n";
	struct history_event given = {7, "Event", build, capture, line, 3};
	history_add(&history, &given);
	memset(build, 'x', 5);
	memset(capture, 'x', 7);
	memset(line, 'x', 3);
	const struct history_event *event = history_at(&history, 0);
	assert_true(event->seq == 7);
	assert_string_equal(event->name, "Event");
	assert_string_equal(event->build_key, "build");
	assert_string_equal(event->capture_id, "capture");
	assert_int_equal(event->len, 3);
	assert_memory_equal(event->line, "{}\n", 3);
	given = (struct history_event){9, "Other", NULL, NULL, line, 3};
	history_add(&history, &given);
	assert_null(history_at(&history, 1)->build_key);
	assert_null(history_at(&history, 1)->capture_id);
	history_finish(&history);
}

static void the_oldest_goes_when_there_are_too_many(void **state)
{
	(void)state;
	struct history history = {0};
	for (uint64_t seq = 1; seq <= LIMIT_KEPT_EVENTS; seq++) {
		add(&history, seq, 10);
	}
	assert_keeps(&history, 1, LIMIT_KEPT_EVENTS);
	assert_true(history_reaches(&history, 0));
	add(&history, LIMIT_KEPT_EVENTS + 1, 10);
	add(&history, LIMIT_KEPT_EVENTS + 2, 10);
	assert_keeps(&history, 3, LIMIT_KEPT_EVENTS + 2);
	assert_false(history_reaches(&history, 0));
	assert_false(history_reaches(&history, 1));
	assert_true(history_reaches(&history, 2));
	history_finish(&history);
}

static void the_oldest_goes_when_the_lines_are_too_long(void **state)
{
	(void)state;
	struct history history = {0};
	size_t third = LIMIT_KEPT_EVENT_BYTES / 3;
	add(&history, 1, third);
	add(&history, 2, third);
	add(&history, 3, third);
	assert_keeps(&history, 1, 3);
	add(&history, 4, third + 10);
	assert_keeps(&history, 3, 4);
	assert_false(history_reaches(&history, 1));
	assert_true(history_reaches(&history, 2));
	history_finish(&history);
}

/* Numbers between are those of events that are not kept by their kind: no loss. */
static void holes_in_the_numbers_are_no_loss(void **state)
{
	(void)state;
	struct history history = {0};
	add(&history, 10, 1);
	add(&history, 20, 1);
	assert_true(history_reaches(&history, 0));
	assert_true(history_reaches(&history, 15));
	history_finish(&history);
}

static void an_event_that_cannot_be_kept_is_a_loss(void **state)
{
	(void)state;
	struct history history = {0};
	add(&history, 1, 1);
	add(&history, 2, LIMIT_KEPT_EVENT_BYTES + 1);
	add(&history, 3, 1);
	assert_keeps(&history, 3, 3);
	assert_false(history_reaches(&history, 1));
	assert_true(history_reaches(&history, 2));
	history_finish(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one_reaches_everything),
		cmocka_unit_test(keeps_copies_of_what_an_event_says),
		cmocka_unit_test(the_oldest_goes_when_there_are_too_many),
		cmocka_unit_test(the_oldest_goes_when_the_lines_are_too_long),
		cmocka_unit_test(holes_in_the_numbers_are_no_loss),
		cmocka_unit_test(an_event_that_cannot_be_kept_is_a_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
