#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/layer/timelines.h"

#define QUEUES     3
#define SEMAPHORES 4
#define BATCHES    60
#define ROUNDS     400

/* Handles are only compared. */
static const char queues[QUEUES];
#define QUEUE(i) ((const void *)(queues + (i)))

static int create(void **state)
{
	*state = timelines_create();
	return *state == NULL;
}

static int destroy(void **state)
{
	timelines_destroy(*state);
	return 0;
}

/* A batch that waits for one value, and signals one; a semaphore of 0: neither. */
static void submit(struct timelines *timelines, unsigned queue, uint64_t wait_for, uint64_t value,
	uint64_t signal, uint64_t signalled)
{
	timelines_begin(timelines, QUEUE(queue));
	if (wait_for != 0) {
		timelines_wait(timelines, wait_for, value);
	}
	if (signal != 0) {
		timelines_signal(timelines, signal, signalled);
	}
	timelines_end(timelines);
}

static bool is_held(struct timelines *timelines)
{
	struct timelines_hold hold;
	return timelines_hold(timelines, &hold);
}

static void a_wait_is_held_until_the_host_signals(void **state)
{
	struct timelines_hold hold = {0};
	assert_false(timelines_are_used(*state));
	timelines_add(*state, 7, 3);
	assert_true(timelines_are_used(*state));
	submit(*state, 0, 7, 3, 0, 0);
	assert_false(is_held(*state));
	submit(*state, 0, 7, 6, 0, 0);
	submit(*state, 1, 7, 5, 0, 0);
	assert_true(timelines_hold(*state, &hold));
	assert_int_equal(hold.semaphore, 7);
	assert_int_equal(hold.value, 6);
	assert_int_equal(hold.reached, 3);
	assert_int_equal(hold.batches, 2);
	assert_false(timelines_signalled(*state, 7, 5));
	assert_true(timelines_hold(*state, &hold));
	assert_int_equal(hold.batches, 1);
	assert_true(timelines_signalled(*state, 7, 6));
	assert_false(is_held(*state));
	assert_false(timelines_signalled(*state, 7, 8));
}

static void what_was_submitted_to_signal_holds_nothing(void **state)
{
	timelines_add(*state, 7, 0);
	submit(*state, 1, 0, 0, 7, 4);
	submit(*state, 0, 7, 4, 0, 0);
	assert_false(is_held(*state));
	submit(*state, 0, 7, 5, 0, 0);
	assert_true(is_held(*state));
	submit(*state, 1, 0, 0, 7, 5);
	assert_false(is_held(*state));
}

static void what_is_behind_in_the_queue_does_not_signal(void **state)
{
	timelines_add(*state, 7, 0);
	timelines_add(*state, 8, 0);
	submit(*state, 0, 7, 1, 0, 0);
	submit(*state, 0, 0, 0, 7, 1);
	assert_true(is_held(*state));
	submit(*state, 0, 0, 0, 8, 1);
	submit(*state, 1, 8, 1, 0, 0);
	assert_true(is_held(*state));
	assert_true(timelines_signalled(*state, 7, 1));
	assert_false(is_held(*state));
}

static void semaphores_that_are_gone_or_others_hold_nothing(void **state)
{
	timelines_add(*state, 7, 0);
	submit(*state, 0, 9, 5, 0, 0);
	assert_false(is_held(*state));
	submit(*state, 0, 7, 5, 0, 0);
	timelines_forget(*state, 7);
	assert_false(is_held(*state));
	timelines_forget(*state, 7);
	timelines_add(*state, 7, 0);
	submit(*state, 0, 7, 5, 0, 0);
	assert_true(is_held(*state));
	assert_true(timelines_signalled(*state, 7, 5));
	/* The handle of one whose end was not seen. */
	timelines_add(*state, 7, 2);
	submit(*state, 0, 7, 3, 0, 0);
	assert_true(is_held(*state));
}

static void more_than_can_be_kept_is_not_said_to_be_held(void **state)
{
	timelines_add(*state, 7, 0);
	for (uint64_t i = 1; i <= TIMELINES_HELD; i++) {
		submit(*state, 0, 7, i, 0, 0);
		assert_true(is_held(*state));
	}
	submit(*state, 0, 7, 5, 0, 0);
	assert_false(is_held(*state));
	submit(*state, 0, 7, 9, 0, 0);
	assert_false(is_held(*state));
	assert_false(timelines_signalled(*state, 7, 5));
}

/* The same by brute force: all batches that there ever were, from the beginning, each time. */
struct told {
	unsigned queue, waits, signals;
	uint64_t wait_for[3], wait_value[3], signal[3], signal_value[3];
};

struct model {
	struct told told[BATCHES];
	size_t count;
	uint64_t by_host[SEMAPHORES + 1];
};

static bool can_run(const struct told *told, const uint64_t *values)
{
	bool can = true;
	for (unsigned i = 0; i < told->waits; i++) {
		can = can && values[told->wait_for[i]] >= told->wait_value[i];
	}
	return can;
}

static size_t count_stuck(const struct model *model, uint64_t *values)
{
	size_t at[QUEUES] = {0}, done = 0;
	bool moves = true;
	memcpy(values, model->by_host, sizeof(model->by_host));
	while (moves) {
		moves = false;
		for (unsigned queue = 0; queue < QUEUES; queue++) {
			while (at[queue] < model->count && model->told[at[queue]].queue != queue) {
				at[queue]++;
			}
			const struct told *told = &model->told[at[queue]];
			if (at[queue] == model->count || !can_run(told, values)) {
				continue;
			}
			for (unsigned i = 0; i < told->signals; i++) {
				if (values[told->signal[i]] < told->signal_value[i]) {
					values[told->signal[i]] = told->signal_value[i];
				}
			}
			at[queue]++;
			done++;
			moves = true;
		}
	}
	return model->count - done;
}

static unsigned pick(unsigned below)
{
	return (unsigned)rand() % below;
}

static void tell_any(struct timelines *timelines, struct model *model)
{
	struct told *told = &model->told[model->count++];
	*told = (struct told){.queue = pick(QUEUES), .waits = pick(3), .signals = pick(3)};
	timelines_begin(timelines, QUEUE(told->queue));
	for (unsigned i = 0; i < told->waits; i++) {
		told->wait_for[i] = 1 + pick(SEMAPHORES);
		told->wait_value[i] = pick(20);
		timelines_wait(timelines, told->wait_for[i], told->wait_value[i]);
	}
	for (unsigned i = 0; i < told->signals; i++) {
		told->signal[i] = 1 + pick(SEMAPHORES);
		told->signal_value[i] = pick(20);
		timelines_signal(timelines, told->signal[i], told->signal_value[i]);
	}
	timelines_end(timelines);
}

static void signal_any(struct timelines *timelines, struct model *model)
{
	uint64_t values[SEMAPHORES + 1], semaphore = 1 + pick(SEMAPHORES), value = pick(20);
	bool was_stuck = count_stuck(model, values) > 0;
	/* One that has more is not signalled with less (VUID-VkSemaphoreSignalInfo-value-03258). */
	if (values[semaphore] < value) {
		model->by_host[semaphore] = value;
		bool is_free = timelines_signalled(timelines, semaphore, value);
		assert_int_equal(is_free, was_stuck && count_stuck(model, values) == 0);
	}
}

/* The values of a queue may be any here, also such as Vulkan forbids: the greatest counts. */
static void any_order_comes_to_what_playing_it_all_comes_to(void **state)
{
	uint64_t values[SEMAPHORES + 1];
	size_t held = 0, free_again = 0;
	(void)state;
	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct model model = {0};
		struct timelines *timelines = timelines_create();
		assert_non_null(timelines);
		for (uint64_t i = 1; i <= SEMAPHORES; i++) {
			timelines_add(timelines, i, 0);
		}
		bool was_held = false;
		while (model.count < BATCHES) {
			pick(3) > 0 ? tell_any(timelines, &model) : signal_any(timelines, &model);
			bool is_stuck = count_stuck(&model, values) > 0;
			assert_int_equal(is_held(timelines), is_stuck);
			held += is_stuck;
			free_again += was_held && !is_stuck;
			was_held = is_stuck;
		}
		timelines_destroy(timelines);
	}
	/* It was not all one way. */
	assert_true(held > ROUNDS && free_again > ROUNDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wait_is_held_until_the_host_signals, create, destroy),
		cmocka_unit_test_setup_teardown(
			what_was_submitted_to_signal_holds_nothing, create, destroy),
		cmocka_unit_test_setup_teardown(
			what_is_behind_in_the_queue_does_not_signal, create, destroy),
		cmocka_unit_test_setup_teardown(
			semaphores_that_are_gone_or_others_hold_nothing, create, destroy),
		cmocka_unit_test_setup_teardown(
			more_than_can_be_kept_is_not_said_to_be_held, create, destroy),
		cmocka_unit_test(any_order_comes_to_what_playing_it_all_comes_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
