#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process_stage.h"

static pid_t fork_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (;;) {
			pause();
		}
	}
	return pid;
}

static struct process *adopt(struct process_stage *stage, pid_t pid, bool is_held)
{
	const char *const argv[] = {"a", "b", NULL};
	const struct process_adoption adoption = {
		.pid = pid, .argv = argv, .cwd = "/somewhere", .is_held = is_held};
	struct process *process = processes_adopt(stage->processes, &adoption, &stage->err);
	if (process != NULL) {
		seen_prepare(&stage->seen);
		stage->seen.process = process;
		process_watch(process, &stage->seen.watch);
	}
	return process;
}

static void is_seen_to_end_and_left_to_its_parent(void **state)
{
	struct process_stage *stage = *state;
	pid_t pid = fork_child();
	struct process *process = adopt(stage, pid, false);
	assert_true(process_is_adopted(process));
	assert_int_equal(process_state(process), PROCESS_RUNNING);
	assert_string_equal(process_cwd(process), "/somewhere");
	assert_int_equal(processes_alive(stage->processes), 1);
	assert_int_equal(processes_to_end(stage->processes), 0);
	kill(pid, SIGKILL);
	stage_run_until(stage, &stage->seen, 'x');
	assert_true(stage->seen.exit.was_observed);
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid); /* nobody reaped it */
	assert_true(WIFSIGNALED(status));
	assert_int_equal(processes_alive(stage->processes), 0);
}

static void runs_when_it_has_left_its_gate(void **state)
{
	struct process_stage *stage = *state;
	const char *const now[] = {"program", NULL};
	size_t count;
	pid_t pid = fork_child();
	struct process *process = adopt(stage, pid, true);
	assert_int_equal(process_state(process), PROCESS_HELD);
	process_left_gate(process, now, "/elsewhere");
	assert_string_equal(stage->seen.told, "R");
	assert_string_equal(process_argv(process, &count)[0], "program");
	assert_int_equal(count, 1);
	assert_string_equal(process_cwd(process), "/elsewhere");
	process_left_gate(process, now, "/elsewhere");
	assert_string_equal(stage->seen.told, "R");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	stage_run_until(stage, &stage->seen, 'x');
}

static void is_neither_stopped_nor_killed_with_us(void **state)
{
	struct process_stage *stage = *state;
	pid_t pid = fork_child();
	assert_non_null(adopt(stage, pid, false));
	processes_stop_all(stage->processes, SIGKILL, 0);
	processes_destroy(stage->processes);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	stage->processes = NULL;
}

static void is_taken_once_and_only_while_it_lives(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "exec sleep 60", 'R');
	struct seen own = stage->seen;
	assert_null(adopt(stage, process_pid(own.process), false));
	assert_int_equal(stage->err.code, ERROR_BUILD_EXISTS);
	stage_stop(stage, SIGTERM, 5000);
	pid_t pid = fork_child();
	struct process *process = adopt(stage, pid, false);
	assert_non_null(process);
	assert_null(adopt(stage, pid, false));
	assert_int_equal(stage->err.code, ERROR_BUILD_EXISTS);
	kill(pid, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	stage_run_until(stage, &stage->seen, 'x');
	assert_null(adopt(stage, pid, false)); /* a zombie */
	assert_int_equal(stage->err.code, ERROR_PROCESS_NOT_FOUND);
	waitpid(pid, NULL, 0);
	assert_null(adopt(stage, pid, false));
	assert_int_equal(stage->err.code, ERROR_PROCESS_NOT_FOUND);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(is_seen_to_end_and_left_to_its_parent),
		CASE(runs_when_it_has_left_its_gate),
		CASE(is_neither_stopped_nor_killed_with_us),
		CASE(is_taken_once_and_only_while_it_lives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
