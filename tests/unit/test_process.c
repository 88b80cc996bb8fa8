#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/pidfd.h"
#include "support/process_stage.h"

static void tells_the_life_of_a_program_in_order(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script(stage, "echo $$; echo wrong >&2; exit 7");
	pid_t pid = process_pid(stage->seen.process);
	assert_int_equal(process_state(stage->seen.process), PROCESS_STARTING);
	assert_null(process_exit(stage->seen.process));
	assert_ptr_equal(processes_find_pid(stage->processes, pid), stage->seen.process);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.told, "rRox");
	char expected[32];
	snprintf(expected, sizeof(expected), "%d\n", (int)pid);
	assert_int_equal(stage->seen.bytes[PROCESS_STDOUT], strlen(expected));
	assert_int_equal(stage->seen.bytes[PROCESS_STDERR], strlen("wrong\n"));
	assert_non_null(strstr(stage->seen.text, expected));
	assert_non_null(strstr(stage->seen.text, "wrong\n"));
	assert_false(stage->seen.exit.was_signalled);
	assert_int_equal(stage->seen.exit.exit_code, 7);
	assert_int_equal(processes_alive(stage->processes), 0);
	assert_null(processes_find_pid(stage->processes, pid));
}

static void tells_signals_apart_from_exit_codes(void **state)
{
	struct process_stage *stage = *state;
	stage_run_script(stage, "exit 139");
	assert_false(stage->seen.exit.was_signalled);
	assert_int_equal(stage->seen.exit.exit_code, 139);
	stage_run_script(stage, "ulimit -c 0; kill -SEGV $$");
	assert_true(stage->seen.exit.was_signalled);
	assert_int_equal(stage->seen.exit.signal, SIGSEGV);
	assert_false(stage->seen.exit.core_dumped);
	stage_run_script(stage, "kill -KILL $$");
	assert_true(stage->seen.exit.was_signalled);
	assert_int_equal(stage->seen.exit.signal, SIGKILL);
	stage_run_script(stage, "exit 127");
	assert_string_equal(stage->seen.told, "rRx");
	assert_int_equal(stage->seen.exit.exit_code, 127);
}

static void tells_what_the_kernel_counted(void **state)
{
	struct process_stage *stage = *state;
	struct rusage before, after;
	assert_true(
		processes_start_guard(stage->processes, &stage->err)); /* its first process counts */
	getrusage(RUSAGE_CHILDREN, &before);
	stage_run_script(stage, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
	getrusage(RUSAGE_CHILDREN, &after);
	int64_t user = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
				   (after.ru_utime.tv_usec - before.ru_utime.tv_usec);
	int64_t system = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
					 (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
	assert_true(stage->seen.exit.user_us > 1000);
	assert_true(llabs(user - (int64_t)stage->seen.exit.user_us) <= 2);
	assert_true(llabs(system - (int64_t)stage->seen.exit.system_us) <= 2);
	assert_true(stage->seen.exit.max_rss_bytes > 100 * 1024);
}

static void keeps_a_held_program_until_it_is_resumed(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "echo ran");
	for (int i = 0; i < 5; i++) {
		uv_run(&stage->loop, UV_RUN_NOWAIT);
		usleep(10000);
	}
	assert_string_equal(stage->seen.told, "r");
	assert_int_equal(process_state(stage->seen.process), PROCESS_HELD);
	assert_true(process_resume(stage->seen.process, &stage->err));
	assert_true(process_resume(stage->seen.process, &stage->err));
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.told, "rRox");
	assert_false(process_resume(stage->seen.process, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BUILD_NOT_RUNNING);
}

static void runs_nothing_of_a_held_program_that_is_stopped(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "echo ran");
	assert_true(process_stop(stage->seen.process, SIGTERM, 5000, &stage->err));
	assert_false(process_resume(stage->seen.process, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BUILD_NOT_RUNNING);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.told, "rx");
	assert_int_equal(stage->seen.exit.exit_code, 125);
}

static void fails_one_that_is_stopped_while_it_starts(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script(stage, "echo ran");
	assert_true(process_stop(stage->seen.process, SIGTERM, 5000, &stage->err));
	stage_run_until(stage, &stage->seen, 'f');
	assert_string_equal(stage->seen.told, "f");
	assert_int_equal(stage->seen.err.code, ERROR_CANCELLED);
	assert_int_equal(processes_alive(stage->processes), 0);
}

static void cancel(void *context, struct process *process)
{
	(void)context;
	process_cancel(process);
}

static void undoes_a_launch_that_is_cancelled_when_ready(void **state)
{
	struct process_stage *stage = *state;
	static const struct process_watch_ops ops = {.ready = cancel};
	struct process_watch canceller = {.ops = &ops};
	stage_launch_script(stage, "echo ran");
	process_watch(stage->seen.process, &canceller);
	stage_run_until(stage, &stage->seen, 'f');
	assert_string_equal(stage->seen.told, "rf");
	assert_int_equal(stage->seen.err.code, ERROR_CANCELLED);
	assert_null(processes_next(stage->processes, NULL));
	assert_int_equal(processes_alive(stage->processes), 0);
}

static void keeps_the_loop_alive_only_for_living_programs(void **state)
{
	struct process_stage *stage = *state;
	assert_false(uv_loop_alive(&stage->loop));
	stage_launch_script(stage, "exit 0");
	assert_true(uv_loop_alive(&stage->loop));
	assert_int_equal(uv_run(&stage->loop, UV_RUN_DEFAULT), 0);
	assert_string_equal(stage->seen.told, "rRx");
	assert_ptr_equal(processes_next(stage->processes, NULL), stage->seen.process);
}

/* Watchers that change who watches. */
struct meddler {
	struct process_watch watch;
	struct seen *leaves, *joins;
};

static void meddle(void *context, struct process *process)
{
	struct meddler *meddler = context;
	process_unwatch(&meddler->leaves->watch);
	process_watch(process, &meddler->joins->watch);
}

static void allows_watchers_to_come_and_go_while_told(void **state)
{
	struct process_stage *stage = *state;
	static const struct process_watch_ops ops = {.ready = meddle};
	struct seen leaves, last, joins;
	struct meddler meddler = {
		.watch = {.ops = &ops, .context = &meddler}, .leaves = &leaves, .joins = &joins};
	stage_launch_script(stage, "exit 0");
	seen_prepare(&leaves);
	seen_prepare(&last);
	seen_prepare(&joins);
	process_watch(stage->seen.process, &meddler.watch);
	process_watch(stage->seen.process, &leaves.watch);
	process_watch(stage->seen.process, &last.watch);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.told, "rRx");
	assert_string_equal(leaves.told, "");
	assert_string_equal(last.told, "rRx");
	assert_string_equal(joins.told, "Rx");
	assert_null(meddler.watch.process);
}

static int ended, closed;

static void on_watched_end(struct pidfd_watch *watch)
{
	ended++;
	pidfd_watch_close(watch);
}

static void on_watched_close(struct pidfd_watch *watch)
{
	(void)watch;
	closed++;
}

static void notices_the_end_of_any_process(void **state)
{
	struct process_stage *stage = *state;
	struct pidfd_watch watch = {.ended = on_watched_end, .closed = on_watched_close};
	pid_t pid = fork();
	if (pid == 0) {
		usleep(50000);
		_exit(0);
	}
	assert_true(pidfd_watch_open(&watch, &stage->loop, pid, &stage->err));
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_int_equal(ended, 1);
	assert_int_equal(closed, 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid); /* it was not reaped */
	assert_false(pidfd_watch_open(&watch, &stage->loop, pid, &stage->err));
	assert_int_equal(stage->err.code, ERROR_PROCESS_NOT_FOUND);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_the_life_of_a_program_in_order),
		CASE(tells_signals_apart_from_exit_codes),
		CASE(tells_what_the_kernel_counted),
		CASE(keeps_a_held_program_until_it_is_resumed),
		CASE(runs_nothing_of_a_held_program_that_is_stopped),
		CASE(fails_one_that_is_stopped_while_it_starts),
		CASE(undoes_a_launch_that_is_cancelled_when_ready),
		CASE(keeps_the_loop_alive_only_for_living_programs),
		CASE(allows_watchers_to_come_and_go_while_told),
		CASE(notices_the_end_of_any_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
