#include "capture/stitches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int set_up(void **state)
{
	*state = stitches_create();
	return *state != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	stitches_destroy(*state);
	return 0;
}

/* The stack pointer in each frame is ten times its address. */
static void learn(struct stitches *stitches, const uint64_t *frames, size_t count)
{
	static const uint8_t is_exact[64] = {1};
	uint64_t sps[64];
	for (size_t i = 0; i < count; i++) {
		sps[i] = 10 * frames[i];
	}
	stitches_learn(stitches, &(struct stitches_stack){frames, is_exact, sps, count});
}

#define LEARN(stitches, ...)                                                                       \
	learn(stitches, (uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8)

static void assert_callers(
	const struct stitches *stitches, uint64_t frame, size_t count, const uint64_t *expected)
{
	struct stitches_stack callers;
	assert_true(stitches_find(stitches, frame, &callers));
	assert_int_equal(callers.count, count);
	assert_memory_equal(callers.frames, expected, count * 8);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(callers.is_exact[i], 0);
		assert_int_equal(callers.sps[i], 10 * expected[i]);
	}
}

static void assert_unknown(const struct stitches *stitches, uint64_t frame)
{
	struct stitches_stack callers;
	assert_false(stitches_find(stitches, frame, &callers));
}

static void knows_the_callers_of_a_frame_of_a_complete_stack(void **state)
{
	LEARN(*state, 0x10, 0x20, 0x30, 0x40);
	assert_callers(*state, 0x10, 3, (uint64_t[]){0x20, 0x30, 0x40});
	assert_callers(*state, 0x30, 1, (uint64_t[]){0x40});
	assert_unknown(*state, 0x40); /* the outermost: there is nothing to complete */
	assert_unknown(*state, 0x50);
	LEARN(*state, 0x11, 0x20, 0x30, 0x40); /* another leaf below the same callers */
	assert_callers(*state, 0x20, 2, (uint64_t[]){0x30, 0x40});
	assert_callers(*state, 0x11, 3, (uint64_t[]){0x20, 0x30, 0x40});
}

static void knows_nothing_of_a_frame_with_several_callers(void **state)
{
	LEARN(*state, 0x10, 0x20, 0x30, 0x40);
	LEARN(*state, 0x10, 0x20, 0x31, 0x40);
	assert_unknown(*state, 0x10);
	assert_unknown(*state, 0x20);
	assert_callers(*state, 0x30, 1, (uint64_t[]){0x40});
	assert_callers(*state, 0x31, 1, (uint64_t[]){0x40});
	LEARN(*state, 0x10, 0x20, 0x30, 0x40); /* once ambiguous, ambiguous */
	assert_unknown(*state, 0x20);
	LEARN(*state, 0x30, 0x41);
	assert_unknown(*state, 0x30);
}

static void knows_nothing_of_what_calls_itself(void **state)
{
	LEARN(*state, 0x10, 0x20, 0x20, 0x20, 0x40);
	assert_unknown(*state, 0x20);
	assert_callers(*state, 0x10, 4, (uint64_t[]){0x20, 0x20, 0x20, 0x40});
}

static void forgets(void **state)
{
	LEARN(*state, 0x10, 0x20);
	stitches_forget(*state);
	assert_unknown(*state, 0x10);
	LEARN(*state, 0x10, 0x30);
	assert_callers(*state, 0x10, 1, (uint64_t[]){0x30});
}

static void a_full_one_still_unlearns(void **state)
{
	struct stitches *stitches = *state;
	uint64_t frames[64];
	LEARN(stitches, 1, 2, 3);
	for (uint64_t i = 0; i < 2 * STITCHES_FRAMES / 64; i++) {
		for (uint64_t j = 0; j < 64; j++) {
			frames[j] = 1000 + i * 64 + j;
		}
		learn(stitches, frames, 64);
	}
	assert_unknown(stitches, frames[0]);
	assert_callers(stitches, 1, 2, (uint64_t[]){2, 3});
	LEARN(stitches, 1, 4, 3);
	assert_unknown(stitches, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(knows_the_callers_of_a_frame_of_a_complete_stack),
		CASE(knows_nothing_of_a_frame_with_several_callers),
		CASE(knows_nothing_of_what_calls_itself),
		CASE(forgets),
		CASE(a_full_one_still_unlearns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
