#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/gate_stage.h"

/* profd-gate --guard, spoken to as protocol/gate.h describes it. */
struct guard {
	int fd;
	pid_t pid;
};

static void start(const struct gate_stage *stage, struct guard *guard)
{
	int ends[2], status, pid = 0;
	char line[64] = "";
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid_t first = fork();
	if (first == 0) {
		dup2(ends[1], 3);
		fcntl(3, F_SETFD, 0);
		execl(stage->gate_path, stage->gate_path, "--guard", "--fd", "3", NULL);
		_exit(99);
	}
	close(ends[1]);
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(recv(ends[0], line, sizeof(line) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(sscanf(line, GATE_GUARD_READY, &pid), 1);
	*guard = (struct guard){ends[0], pid};
}

static void say(const struct guard *guard, const char *words)
{
	assert_int_equal(send(guard->fd, words, strlen(words), MSG_NOSIGNAL), strlen(words));
}

/* Waits for the end of its stream. */
static void expect_end(const struct guard *guard)
{
	char byte;
	assert_true(recv(guard->fd, &byte, 1, 0) <= 0);
	close(guard->fd);
}

/* A leader of a group. */
static pid_t start_group(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		for (;;) {
			pause();
		}
	}
	setpgid(pid, pid);
	return pid;
}

static void end_group(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void expect_killed(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void kills_at_the_end_of_the_stream_what_is_listed_then(void **state)
{
	struct guard guard;
	char words[200];
	pid_t listed = start_group(), taken_off = start_group(), other = start_group(),
		  again = start_group();
	start(*state, &guard);
	snprintf(words, sizeof(words), "+%d\n+%d\n-%d\n+%d\n+%d\n-%d\n+%d\n", (int)listed,
		(int)taken_off, (int)taken_off, (int)again, (int)again, (int)again, (int)again);
	for (size_t i = 0; i < strlen(words); i++) {
		char piece[2] = {words[i], '\0'}; /* lines come in whatever pieces */
		say(&guard, piece);
	}
	shutdown(guard.fd, SHUT_WR);
	expect_killed(listed);
	expect_killed(again);
	expect_end(&guard);
	end_group(taken_off);
	end_group(other);
}

static void ends_without_harm_at_what_is_no_line(void **state)
{
	static const char *const wrong[] = {"\n", "hello\n", "+\n", "+x\n", "+1\n", "+0\n", "+-5\n",
		"*2\n", "+99999999999\n", "+1234567890123456789", "- 5\n", "+5 \n"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct guard guard;
		char words[32];
		pid_t listed = start_group();
		start(*state, &guard);
		snprintf(words, sizeof(words), "+%d\n", (int)listed);
		say(&guard, words);
		say(&guard, wrong[i]);
		expect_end(&guard);
		end_group(listed);
	}
}

static void takes_as_many_groups_as_it_says(void **state)
{
	struct guard guard;
	char line[32];
	start(*state, &guard);
	/* Numbers that no process has: above pid_max's largest value. */
	for (int i = 0; i < GATE_GUARD_GROUPS; i++) {
		snprintf(line, sizeof(line), "+%d\n", 5000000 + i);
		say(&guard, line);
	}
	say(&guard, "-5000000\n+5000000\n");
	usleep(50000);
	assert_int_equal(kill(guard.pid, 0), 0);
	say(&guard, "+6000000\n");
	expect_end(&guard);
}

static void a_program_gets_a_session_and_its_terminal(void **state)
{
	const char *argv[] = {"sh", "-c", "cut -d' ' -f5,6,8 /proc/$$/stat; echo $$; tty", NULL};
	struct gate_options options = stage_options(*state, argv);
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	char name[64], expected[200];
	assert_int_equal(ptsname_r(master, name, sizeof(name)), 0);
	options.stdio[0] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	options.new_terminal = true;
	struct run run;
	stage_run_all(&run, options);
	int pid = (int)run.gate.pid;
	snprintf(expected, sizeof(expected), "%d %d %d\n%d\n%s\n", pid, pid, pid, pid, name);
	assert_string_equal(run.text, expected);
	close(options.stdio[0]);
	close(master);
	/* Something that is no terminal is told. */
	options.stdio[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	stage_begin(&run, options);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "terminal");
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_CANNOT_RUN);
	close(options.stdio[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kills_at_the_end_of_the_stream_what_is_listed_then),
		cmocka_unit_test(ends_without_harm_at_what_is_no_line),
		cmocka_unit_test(takes_as_many_groups_as_it_says),
		cmocka_unit_test(a_program_gets_a_session_and_its_terminal),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
