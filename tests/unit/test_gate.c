#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/descriptors.h"
#include "support/gate_stage.h"

static void becomes_the_program_under_the_same_pid(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo $$ $1", "name", "a b", NULL};
	struct run run;
	stage_run_all(&run, stage_options(stage, argv));
	char expected[64];
	snprintf(expected, sizeof(expected), "%d a b\n", (int)run.gate.pid);
	assert_string_equal(run.text, expected);
}

static void runs_nothing_of_the_program_before_go(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo ran; sleep 30", NULL};
	char link[64], exe[PATH_MAX], real_gate[PATH_MAX];
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)run.gate.pid);
	assert_int_equal(run.state, GATE_IS_READY);
	assert_non_null(realpath(link, exe));
	assert_non_null(realpath(stage->gate_path, real_gate));
	assert_string_equal(exe, real_gate);
	struct pollfd output = {.fd = run.out, .events = POLLIN};
	assert_int_equal(poll(&output, 1, 50), 0);
	stage_go(&run);
	assert_int_equal(run.state, GATE_RUNNING);
	assert_non_null(realpath(link, exe));
	assert_string_not_equal(exe, real_gate);
	assert_int_equal(poll(&output, 1, STAGE_WAIT_MS), 1);
	kill(run.gate.pid, SIGKILL);
	close(run.out);
	gate_close(&run.gate);
	waitpid(run.gate.pid, NULL, 0);
}

static void exits_with_125_when_its_owner_goes_before_go(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo ran", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	assert_int_equal(run.state, GATE_IS_READY);
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NO_GO);
	assert_string_equal(run.text, "");
}

static void exits_with_125_at_any_other_word_than_go(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo ran", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	assert_int_equal(send(run.gate.fd, "gone\n", 5, MSG_NOSIGNAL), 5);
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NO_GO);
	assert_string_equal(run.text, "");
}

/* The middle process starts a gate, tells its pid and goes. */
static _Noreturn void be_owner_that_dies(const struct gate_stage *stage, int told, bool after_go)
{
	const char *argv[] = {"sleep", "60", NULL};
	struct gate_options options = stage_options(stage, argv);
	options.die_with_parent = true;
	struct gate gate = {.fd = -1};
	struct error err;
	if (!gate_start(&gate, &options, &err) ||
		gate_wait(&gate, false, STAGE_WAIT_MS, &err) != GATE_IS_READY) {
		_exit(1);
	}
	if (after_go &&
		(!gate_go(&gate, &err) || gate_wait(&gate, true, STAGE_WAIT_MS, &err) != GATE_RUNNING)) {
		_exit(2);
	}
	_exit(write(told, &gate.pid, sizeof(gate.pid)) == sizeof(gate.pid) ? 0 : 3);
}

static int status_after_owner_died(const struct gate_stage *stage, bool after_go)
{
	int told[2];
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t owner = fork();
	assert_true(owner >= 0);
	if (owner == 0) {
		be_owner_that_dies(stage, told[1], after_go);
	}
	pid_t orphan = 0;
	int status;
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_int_equal(status, 0);
	assert_int_equal(read(told[0], &orphan, sizeof(orphan)), sizeof(orphan));
	assert_int_equal(waitpid(orphan, &status, 0), orphan);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	close(told[0]);
	close(told[1]);
	return status;
}

static void dies_with_its_parent(void **state)
{
	struct gate_stage *stage = *state;
	assert_int_equal(status_after_owner_died(stage, true), SIGKILL);
	int status =
		status_after_owner_died(stage, false); /* by the signal or by the end of the socket */
	assert_true(status == SIGKILL || status == GATE_EXIT_NO_GO << 8);
}

static void reports_a_gate_that_was_killed(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	assert_int_equal(run.state, GATE_IS_READY);
	assert_int_equal(gate_wait(&run.gate, false, 0, &run.err), GATE_WAITING);
	kill(run.gate.pid, SIGKILL);
	assert_int_equal(gate_wait(&run.gate, false, STAGE_WAIT_MS, &run.err), GATE_FAILED);
	assert_string_equal(run.err.detail, "gate_died");
	assert_false(gate_go(&run.gate, &run.err));
	assert_int_equal(run.err.code, ERROR_LAUNCH_FAILED);
	stage_finish(&run);
	assert_int_equal(WTERMSIG(run.status), SIGKILL);
}

static void takes_a_gate_killed_before_it_read_go_for_dead(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	kill(run.gate.pid, SIGSTOP);
	siginfo_t info;
	waitid(P_PID, (id_t)run.gate.pid, &info, WSTOPPED | WNOWAIT);
	assert_true(gate_go(&run.gate, &run.err));
	kill(run.gate.pid, SIGKILL);
	assert_int_equal(gate_wait(&run.gate, true, STAGE_WAIT_MS, &run.err), GATE_FAILED);
	assert_string_equal(run.err.detail, "gate_died");
	stage_finish(&run);
}

static void refuses_a_gate_that_cannot_be_started(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	struct gate_options options = stage_options(stage, argv);
	struct gate gate = {.fd = -1};
	struct error err = {0};
	size_t before = descriptors_open();
	options.gate_path = "/no/such/profd-gate";
	assert_false(gate_start(&gate, &options, &err));
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_non_null(strstr(err.message, "/no/such/profd-gate"));
	static char long_text[200 * 1024]; /* the kernel takes 128 KiB in one argument */
	memset(long_text, 'x', sizeof(long_text) - 1);
	const char *long_argv[] = {"true", long_text, NULL};
	options = stage_options(stage, long_argv);
	assert_false(gate_start(&gate, &options, &err));
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(err.detail, "e2big");
	assert_int_equal(descriptors_open(), before);
}

static void refuses_a_shortage_of_descriptors_without_leaking(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	struct gate_options options = stage_options(stage, argv);
	options.stdio[0] = options.stdio[1] = options.stdio[2] = 1;
	size_t before = descriptors_open();
	struct rlimit old;
	getrlimit(RLIMIT_NOFILE, &old);
	int refused = 0;
	int probe = dup(1); /* the lowest free one */
	close(probe);
	for (int more = 0; more < 8; more++) {
		struct rlimit tight = {(rlim_t)(probe + more), old.rlim_max};
		struct gate gate = {.fd = -1};
		struct error err = {0};
		setrlimit(RLIMIT_NOFILE, &tight);
		bool started = gate_start(&gate, &options, &err);
		setrlimit(RLIMIT_NOFILE, &old);
		if (started) {
			gate_close(&gate);
			waitpid(gate.pid, NULL, 0);
		} else {
			refused++;
			assert_int_not_equal(err.code, ERROR_NONE);
		}
		assert_int_equal(descriptors_open(), before);
	}
	assert_in_range(refused, 2, 7);
}

static void leaves_no_descriptor_and_no_child_behind(void **state)
{
	struct gate_stage *stage = *state;
	const char *good[] = {"true", NULL};
	const char *bad[] = {"no-such-program", NULL};
	size_t before = descriptors_open();
	for (int i = 0; i < 20; i++) {
		struct run run;
		stage_run_all(&run, stage_options(stage, good));
		stage_begin(&run, stage_options(stage, bad));
		stage_finish(&run);
	}
	assert_int_equal(descriptors_open(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(becomes_the_program_under_the_same_pid),
		cmocka_unit_test(runs_nothing_of_the_program_before_go),
		cmocka_unit_test(exits_with_125_when_its_owner_goes_before_go),
		cmocka_unit_test(exits_with_125_at_any_other_word_than_go),
		cmocka_unit_test(dies_with_its_parent),
		cmocka_unit_test(reports_a_gate_that_was_killed),
		cmocka_unit_test(takes_a_gate_killed_before_it_read_go_for_dead),
		cmocka_unit_test(refuses_a_gate_that_cannot_be_started),
		cmocka_unit_test(refuses_a_shortage_of_descriptors_without_leaking),
		cmocka_unit_test(leaves_no_descriptor_and_no_child_behind),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
