#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process_stage.h"

#define IGNORES_TERM "trap '' TERM; echo up; while :; do sleep 0.1; done"

static void ends_at_the_first_signal_what_heeds_it(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "echo up; sleep 30; echo no", 'o');
	assert_true(process_stop(stage->seen.process, SIGTERM, 10000, &stage->err));
	assert_true(stage_stop(stage, SIGTERM, 10000) < 5000);
	assert_true(stage->seen.exit.was_signalled);
	assert_int_equal(stage->seen.exit.signal, SIGTERM);
	assert_true(process_stop(stage->seen.process, SIGTERM, 0, &stage->err)); /* an exited one */
}

static void kills_after_the_grace_what_ignores_the_signal(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, IGNORES_TERM, 'o');
	assert_in_range(stage_stop(stage, SIGTERM, 300), 299, 5000);
	assert_int_equal(stage->seen.exit.signal, SIGKILL);
}

static void lets_a_later_stop_shorten_the_grace(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, IGNORES_TERM, 'o');
	uint64_t start = stage_now_ms();
	assert_true(process_stop(stage->seen.process, SIGTERM, 15000, &stage->err));
	assert_true(process_stop(stage->seen.process, SIGTERM, 100, &stage->err));
	stage_stop(stage, SIGTERM, 15000);
	assert_in_range(stage_now_ms() - start, 99, 5000);
	assert_int_equal(stage->seen.exit.signal, SIGKILL);
}

static void kills_members_of_the_group_that_outlive_their_leader(void **state)
{
	struct process_stage *stage = *state;
	/* The member holds no output, so that only the group tells of it. */
	stage_launch_script_until(stage,
		"trap 'exit 0' TERM\n"
		"(trap '' TERM; exec sleep 30 >/dev/null 2>&1) & echo $!\n"
		"while :; do sleep 0.05; done",
		'o');
	pid_t member = atoi(stage->seen.text);
	uv_sleep(50);
	assert_in_range(stage_stop(stage, SIGTERM, 400), 399, 5000);
	assert_int_equal(stage->seen.exit.exit_code, 0);
	for (int i = 0; i < 100 && !stage_is_gone(member); i++) {
		usleep(10000);
	}
	assert_true(stage_is_gone(member));
}

static void gives_members_of_the_group_their_grace(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage,
		"(trap 'sleep 0.2; echo clean; exit 0' TERM; echo up; while :; do sleep 0.05; done) "
		"2>/dev/null &\n"
		"sleep 30",
		'o');
	assert_true(stage_stop(stage, SIGTERM, 10000) < 5000);
	assert_int_equal(stage->seen.exit.signal, SIGTERM);
	assert_string_equal(stage->seen.text, "up\nclean\n");
}

static void ends_a_program_that_stopped_itself(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "echo up; kill -STOP $$; echo on; sleep 30", 'o');
	uv_sleep(100);
	assert_string_equal(stage->seen.told, "rRo");
	stage_stop(stage, SIGTERM, 10000);
	assert_int_equal(stage->seen.exit.signal, SIGTERM);
}

static void refuses_signals_that_are_none(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "sleep 30");
	assert_false(process_stop(stage->seen.process, 0, 0, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BAD_PARAMS);
	assert_false(process_stop(stage->seen.process, 65, 0, &stage->err));
	assert_int_equal(process_state(stage->seen.process), PROCESS_HELD);
	stage_stop(stage, SIGKILL, 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ends_at_the_first_signal_what_heeds_it),
		CASE(kills_after_the_grace_what_ignores_the_signal),
		CASE(lets_a_later_stop_shorten_the_grace),
		CASE(kills_members_of_the_group_that_outlive_their_leader),
		CASE(gives_members_of_the_group_their_grace),
		CASE(ends_a_program_that_stopped_itself),
		CASE(refuses_signals_that_are_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
