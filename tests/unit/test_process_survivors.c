#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/descendants.h"
#include "support/process_stage.h"

/* Reads so many numbers that the script has printed. */
static void numbers_of(const struct process_stage *stage, int *numbers, size_t count)
{
	const char *text = stage->seen.text;
	for (size_t i = 0; i < count; i++) {
		char *end;
		numbers[i] = (int)strtol(text, &end, 10);
		assert_true(end > text);
		text = end;
	}
}

static void run_until_lines(struct process_stage *stage, size_t bytes)
{
	while (stage->seen.bytes[PROCESS_STDOUT] < bytes) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < 1000 && !stage_is_gone(pid); i++) {
		usleep(10000);
	}
}

static void names_who_left_the_group(void **state)
{
	struct process_stage *stage = *state;
	char name[DESCENDANT_NAME_BYTES];
	pid_t pids[LIMIT_SURVIVORS];
	int numbers[1];
	/* A member of the group, which dies, and a session of its own, which does not. */
	stage_launch_script_until(stage,
		"sleep 61 & setsid sh -c 'echo $$; exec sleep 62 >/dev/null 2>&1' & wait; wait", 'o');
	numbers_of(stage, numbers, 1);
	assert_int_equal(process_survivors(stage->seen.process, pids), 0);
	stage_stop(stage, SIGTERM, 5000);
	assert_int_equal(process_survivors(stage->seen.process, pids), 1);
	assert_int_equal(pids[0], numbers[0]);
	descendant_name(pids[0], name);
	assert_string_equal(name, "sleep");
	end(numbers[0]);
	assert_int_equal(process_survivors(stage->seen.process, pids), 0);
	descendant_name(numbers[0], name);
}

static void sees_those_that_are_born_while_the_stop_goes_on(void **state)
{
	struct process_stage *stage = *state;
	pid_t pids[LIMIT_SURVIVORS];
	int numbers[2];
	stage_launch_script_until(stage,
		"exec 2>/dev/null; trap 'setsid sh -c \"echo \\$\\$; exec sleep 60 >/dev/null 2>&1\" & "
		"sleep 1; exit 5' "
		"TERM; "
		"echo 0; while :; do sleep 0.02; done",
		'o');
	assert_true(process_stop(stage->seen.process, SIGTERM, 5000, &stage->err));
	stage_run_until(stage, &stage->seen, 'x');
	assert_int_equal(stage->seen.exit.exit_code, 5);
	numbers_of(stage, numbers, 2);
	assert_int_equal(process_survivors(stage->seen.process, pids), 1);
	assert_int_equal(pids[0], numbers[1]);
	end(numbers[1]);
}

static void counts_more_than_it_names(void **state)
{
	struct process_stage *stage = *state;
	pid_t pids[LIMIT_SURVIVORS];
	int numbers[25];
	stage_launch_script_until(stage,
		"for i in 1 2 3 4 5; do for j in 1 2 3 4 5; do setsid sh -c 'printf \"%07d\\n\" $$; exec "
		"sleep 60 "
		">/dev/null 2>&1' & done; done; wait",
		'o');
	run_until_lines(stage, 25 * 8);
	stage_stop(stage, SIGTERM, 5000);
	assert_int_equal(process_survivors(stage->seen.process, pids), 25);
	numbers_of(stage, numbers, 25);
	for (size_t i = 0; i < LIMIT_SURVIVORS; i++) {
		bool known = false;
		for (size_t j = 0; j < 25; j++) {
			known = known || numbers[j] == pids[i];
		}
		assert_true(known);
	}
	for (size_t i = 0; i < 25; i++) {
		end(numbers[i]);
	}
}

static void knows_a_process_from_a_later_one_of_its_number(void **state)
{
	(void)state;
	struct descendants descendants = {0};
	pid_t child = fork();
	if (child == 0) {
		for (;;) {
			pause();
		}
	}
	descendants_look(&descendants, getpid());
	assert_int_equal(descendants.list.len, 1);
	assert_int_equal(descendants.list.items[0].pid, child);
	descendants_keep_living(&descendants, 0);
	assert_int_equal(descendants.list.len, 1);
	descendants.list.items[0].start_ticks--; /* as if an earlier one had had the number */
	descendants_keep_living(&descendants, 0);
	assert_int_equal(descendants.list.len, 0);
	descendants_look(&descendants, getpid());
	descendants_keep_living(&descendants, getpgrp());
	assert_int_equal(descendants.list.len, 0);
	descendants_look(&descendants, getpid());
	kill(child, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT); /* a zombie does not live */
	descendants_keep_living(&descendants, 0);
	assert_int_equal(descendants.list.len, 0);
	waitpid(child, NULL, 0);
	descendants_finish(&descendants);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_who_left_the_group),
		CASE(sees_those_that_are_born_while_the_stop_goes_on),
		CASE(counts_more_than_it_names),
		CASE(knows_a_process_from_a_later_one_of_its_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
