#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "server/queue.h"

static enum queue_result put(
	struct queue *queue, enum events_class class, const char *key, const char *text)
{
	return queue_put(queue, class, "Name", key, strdup(text), strlen(text));
}

/* A line of so many bytes. */
static enum queue_result put_bytes(
	struct queue *queue, enum events_class class, const char *name, const char *key, size_t len)
{
	char *text = malloc(len);
	memset(text, 'x', len);
	return queue_put(queue, class, name, key, text, len);
}

static void assert_next(struct queue *queue, const char *expected)
{
	struct queue_line *line = queue_take(queue);
	assert_non_null(line);
	assert_int_equal(line->len, strlen(expected));
	assert_memory_equal(line->text, expected, line->len);
	queue_line_destroy(line);
}

static void lines_of_all_classes_come_out_in_the_order_they_went_in(void **state)
{
	(void)state;
	struct queue queue = {0};
	assert_true(queue_is_empty(&queue));
	assert_int_equal(put(&queue, EVENTS_LOSSLESS, NULL, "one"), QUEUE_KEPT);
	assert_int_equal(put(&queue, EVENTS_DROPPABLE, NULL, "two"), QUEUE_KEPT);
	assert_int_equal(put(&queue, EVENTS_LATEST, "key", "three"), QUEUE_KEPT);
	assert_int_equal(put(&queue, EVENTS_LOSSLESS, NULL, "four"), QUEUE_KEPT);
	assert_false(queue_is_empty(&queue));
	assert_next(&queue, "one");
	assert_next(&queue, "two");
	assert_next(&queue, "three");
	assert_next(&queue, "four");
	assert_true(queue_is_empty(&queue));
	assert_null(queue_take(&queue));
	queue_finish(&queue);
}

static void a_later_line_takes_the_place_of_the_unsent_one_with_its_key(void **state)
{
	(void)state;
	struct queue queue = {0};
	put(&queue, EVENTS_LATEST, "a", "a1");
	put(&queue, EVENTS_LATEST, "b", "b1");
	put(&queue, EVENTS_LOSSLESS, NULL, "reply");
	put(&queue, EVENTS_LATEST, "a", "a2 longer");
	assert_int_equal(queue.event_bytes, strlen("a2 longer") + strlen("b1"));
	assert_next(&queue, "a2 longer");
	put(&queue, EVENTS_LATEST, "a", "a3");
	assert_next(&queue, "b1");
	assert_next(&queue, "reply");
	assert_next(&queue, "a3");
	assert_int_equal(queue.event_bytes, 0);
	assert_int_equal(queue.lossless_bytes, 0);
	queue_finish(&queue);
}

static void output_beyond_its_room_is_refused_and_counted_by_name(void **state)
{
	(void)state;
	struct queue queue = {0};
	size_t half = LIMIT_QUEUE_EVENT_BYTES / 2;
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, half), QUEUE_KEPT);
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, half), QUEUE_KEPT);
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, 1), QUEUE_DROPPED);
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, 1), QUEUE_DROPPED);
	assert_int_equal(put_bytes(&queue, EVENTS_LATEST, "Progress", "k", 1), QUEUE_DROPPED);
	/* What must not be lost still has room. */
	assert_int_equal(put_bytes(&queue, EVENTS_LOSSLESS, "End", NULL, half), QUEUE_KEPT);
	assert_null(queue_take_dropped(&queue));
	queue_line_destroy(queue_take(&queue));
	json_t *counts = queue_take_dropped(&queue);
	assert_non_null(counts);
	assert_int_equal(json_object_size(counts), 2);
	assert_int_equal(json_integer_value(json_object_get(counts, "Out")), 2);
	assert_int_equal(json_integer_value(json_object_get(counts, "Progress")), 1);
	json_decref(counts);
	assert_null(queue_take_dropped(&queue));
	queue_finish(&queue);
}

static void after_a_drop_nothing_is_let_in_before_the_drop_is_told(void **state)
{
	(void)state;
	struct queue queue = {0};
	size_t quarter = LIMIT_QUEUE_EVENT_BYTES / 4;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, quarter), QUEUE_KEPT);
	}
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, quarter), QUEUE_DROPPED);
	queue_line_destroy(queue_take(&queue));
	/* There is room for it, but not half of all. */
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, quarter), QUEUE_DROPPED);
	assert_null(queue_take_dropped(&queue));
	queue_line_destroy(queue_take(&queue));
	json_t *counts = queue_take_dropped(&queue);
	assert_int_equal(json_integer_value(json_object_get(counts, "Out")), 2);
	json_decref(counts);
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, quarter), QUEUE_KEPT);
	queue_finish(&queue);
}

static void a_waiting_slot_is_overwritten_even_while_others_are_dropped(void **state)
{
	(void)state;
	struct queue queue = {0};
	put(&queue, EVENTS_LATEST, "k", "old");
	put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, LIMIT_QUEUE_EVENT_BYTES - 3);
	assert_int_equal(put_bytes(&queue, EVENTS_DROPPABLE, "Out", NULL, 1), QUEUE_DROPPED);
	assert_int_equal(put(&queue, EVENTS_LATEST, "k", "new"), QUEUE_KEPT);
	assert_next(&queue, "new");
	queue_finish(&queue);
}

static void is_full_when_lines_that_must_not_be_lost_exceed_the_hard_limit(void **state)
{
	(void)state;
	struct queue queue = {0};
	size_t len = LIMIT_QUEUE_HARD_BYTES / 64;
	for (int i = 0; i < 64; i++) {
		assert_int_equal(put_bytes(&queue, EVENTS_LOSSLESS, "End", NULL, len), QUEUE_KEPT);
	}
	assert_int_equal(put_bytes(&queue, EVENTS_LOSSLESS, "End", NULL, 1), QUEUE_FULL);
	queue_line_destroy(queue_take(&queue));
	assert_int_equal(put_bytes(&queue, EVENTS_LOSSLESS, "End", NULL, len), QUEUE_KEPT);
	queue_finish(&queue);
}

static void never_holds_more_than_both_limits(void **state)
{
	(void)state;
	struct queue queue = {0};
	char key[16];
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "%d", i);
		put_bytes(&queue, (enum events_class)(i % 3), "Name", key, 2000);
	}
	size_t held = 0;
	for (const struct queue_line *line = queue.first; line != NULL; line = line->next) {
		held += line->len;
	}
	assert_int_equal(held, queue.event_bytes + queue.lossless_bytes);
	assert_true(queue.event_bytes <= LIMIT_QUEUE_EVENT_BYTES);
	assert_true(queue.lossless_bytes <= LIMIT_QUEUE_HARD_BYTES);
	queue_finish(&queue);
	assert_true(queue_is_empty(&queue));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_all_classes_come_out_in_the_order_they_went_in),
		cmocka_unit_test(a_later_line_takes_the_place_of_the_unsent_one_with_its_key),
		cmocka_unit_test(output_beyond_its_room_is_refused_and_counted_by_name),
		cmocka_unit_test(after_a_drop_nothing_is_let_in_before_the_drop_is_told),
		cmocka_unit_test(a_waiting_slot_is_overwritten_even_while_others_are_dropped),
		cmocka_unit_test(is_full_when_lines_that_must_not_be_lost_exceed_the_hard_limit),
		cmocka_unit_test(never_holds_more_than_both_limits),
	};
	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
