#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/record.h"
#include "support/process_stage.h"

/* What the kernel says of the process behind a pidfd (pidfd_open(2)). */
static pid_t pid_of(int pidfd)
{
	char path[64], line[256];
	int pid = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL && sscanf(line, "Pid: %d", &pid) != 1) {
	}
	fclose(file);
	return pid;
}

static void read_status(pid_t pid, const char *key, char *value, size_t bytes)
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	value[0] = '\0';
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0) {
			snprintf(value, bytes, "%s", line + strlen(key) + 2);
			value[strcspn(value, "\n")] = '\0';
		}
	}
	fclose(file);
}

static void link_of(pid_t pid, const char *name, char *target)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	ssize_t len = readlink(path, target, PATH_MAX - 1);
	target[len > 0 ? len : 0] = '\0';
}

static void wait_until_gone(pid_t pid)
{
	for (int i = 0; i < 1000 && !stage_is_gone(pid); i++) {
		usleep(10000);
	}
	assert_true(stage_is_gone(pid));
}

static void holds_nothing_of_ours(void **state)
{
	struct process_stage *stage = *state;
	char target[PATH_MAX];
	assert_true(processes_start_guard(stage->processes, &stage->err));
	pid_t pid = pid_of(stage->processes->guard.pidfd);
	for (int i = 0; i < 100 && getsid(pid) != pid; i++) {
		usleep(10000); /* the session is made by the process itself */
	}
	assert_int_equal(getsid(pid), pid);
	read_status(pid, "Name", target, sizeof(target));
	assert_string_equal(target, "profd-guard");
	read_status(pid, "PPid", target, sizeof(target));
	assert_int_not_equal(atoi(target), getpid());
	read_status(pid, "SigIgn", target, sizeof(target));
	assert_int_equal(strtoull(target, NULL, 16) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1),
		0xffffffffffffffffull);
	link_of(pid, "cwd", target);
	assert_string_equal(target, "/");
	for (int fd = 0; fd < 200; fd++) {
		char name[32];
		snprintf(name, sizeof(name), "fd/%d", fd);
		link_of(pid, name, target);
		if (fd < 3) {
			assert_string_equal(target, "/dev/null");
		} else if (fd == 3) {
			assert_int_equal(strncmp(target, "socket:", 7), 0);
		} else {
			assert_string_equal(target, "");
		}
	}
	kill(pid, SIGTERM);
	kill(pid, SIGHUP);
	usleep(50000);
	assert_false(stage_is_gone(pid));
}

/* What a daemon of its own does, which is then killed; answers are written to out. */
typedef void (*daemon_fn)(struct process_stage *stage, FILE *out);

static void run_daemon(daemon_fn run, int numbers[3])
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		void *state = NULL;
		FILE *out = fdopen(ends[1], "w");
		close(ends[0]);
		if (stage_set_up(&state) == 0) {
			run(state, out);
		}
		fflush(out);
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	FILE *in = fdopen(ends[0], "r");
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(fscanf(in, "%d %d %d", &numbers[0], &numbers[1], &numbers[2]), 3);
	fclose(in);
}

#define MEMBERS "(trap '' TERM HUP; exec sleep 60) & echo $!; wait"

static void launch(struct process_stage *stage, bool leave, struct seen *seen)
{
	const char *argv[] = {"sh", "-c", leave ? "exec sleep 60" : MEMBERS, NULL};
	const struct process_options options = {
		.argv = argv, .leave = leave, .stdio = leave ? PROCESS_STDIO_NULL : PROCESS_STDIO_PIPE};
	stage_run(stage, seen, &options, leave ? 'R' : 'o');
}

static void launches_two(struct process_stage *stage, FILE *out)
{
	struct seen left;
	launch(stage, false, &stage->seen);
	launch(stage, true, &left);
	fprintf(out, "%d %s %d\n", (int)process_pid(stage->seen.process), stage->seen.text,
		(int)process_pid(left.process));
}

static void kills_whole_groups_and_leaves_those_that_shall_stay(void **state)
{
	(void)state;
	int numbers[3];
	run_daemon(launches_two, numbers);
	wait_until_gone(numbers[0]);
	wait_until_gone(numbers[1]);
	usleep(100000);
	assert_false(stage_is_gone(numbers[2]));
	kill(numbers[2], SIGKILL);
	wait_until_gone(numbers[2]);
}

static void loses_its_guard(struct process_stage *stage, FILE *out)
{
	launch(stage, false, &stage->seen);
	pid_t before = pid_of(stage->processes->guard.pidfd);
	usleep(1100000); /* one that lived for long is replaced at once */
	kill(before, SIGKILL);
	while (stage->processes->guard.fd < 0 || pid_of(stage->processes->guard.pidfd) == before) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
	fprintf(out, "%d %s %d\n", (int)process_pid(stage->seen.process), stage->seen.text,
		(int)pid_of(stage->processes->guard.pidfd));
}

static void is_replaced_by_one_that_knows_the_groups(void **state)
{
	(void)state;
	int numbers[3];
	run_daemon(loses_its_guard, numbers);
	wait_until_gone(numbers[0]);
	wait_until_gone(numbers[1]);
	wait_until_gone(numbers[2]);
}

static void is_replaced_before_anything_runs_without_it(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "echo ran");
	pid_t before = pid_of(stage->processes->guard.pidfd);
	kill(before, SIGKILL);
	wait_until_gone(before);
	assert_true(process_resume(stage->seen.process, &stage->err));
	pid_t now = pid_of(stage->processes->guard.pidfd);
	assert_int_not_equal(now, before);
	assert_false(stage_is_gone(now));
	stage_run_until(stage, &stage->seen, 'x');
}

static void forgets_groups_that_have_ended(void **state)
{
	struct process_stage *stage = *state;
	stage_run_script(stage, "(exec sleep 60) >/dev/null 2>&1 & echo $!");
	pid_t member = atoi(stage->seen.text);
	pid_t guard = pid_of(stage->processes->guard.pidfd);
	guard_finish(&stage->processes->guard);
	wait_until_gone(guard);
	assert_false(stage_is_gone(member)); /* it is nobody's any more */
	kill(member, SIGKILL);
}

static void count_telling(struct guard *guard)
{
	(*(int *)guard->context)++;
}

static void does_no_harm_when_it_was_stopped_and_is_replaced(void **state)
{
	struct process_stage *stage = *state;
	struct guard guard = {0};
	int told = 0;
	pid_t victim = fork();
	if (victim == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		for (;;) {
			pause();
		}
	}
	setpgid(victim, victim);
	assert_true(guard_init(&guard, &stage->loop, stage->gate_path, &stage->err));
	guard.tell_all = count_telling;
	guard.context = &told;
	assert_true(guard_ensure(&guard, &stage->err));
	assert_int_equal(told, 1);
	pid_t before = pid_of(guard.pidfd);
	kill(before, SIGSTOP);
	for (int i = 0; i < 100000 && told == 1; i++) {
		assert_true(guard_add(&guard, victim, &stage->err));
	}
	assert_int_equal(told, 2);
	wait_until_gone(before);
	assert_int_not_equal(pid_of(guard.pidfd), before);
	assert_int_equal(waitpid(victim, NULL, WNOHANG), 0);
	guard_remove(&guard, victim);
	guard_finish(&guard);
	uv_run(&stage->loop, UV_RUN_NOWAIT);
	usleep(100000);
	assert_int_equal(waitpid(victim, NULL, WNOHANG), 0);
	kill(victim, SIGKILL);
	assert_int_equal(waitpid(victim, NULL, 0), victim);
}

static void is_needed_to_launch(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv};
	stage->processes->guard.gate_path = "/bin/false";
	assert_false(stage_launch(stage, &stage->seen, &options));
	assert_int_equal(stage->seen.err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(stage->seen.err.detail, "guard");
	assert_int_equal(processes_alive(stage->processes), 0);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(holds_nothing_of_ours),
		CASE(kills_whole_groups_and_leaves_those_that_shall_stay),
		CASE(is_replaced_by_one_that_knows_the_groups),
		CASE(is_replaced_before_anything_runs_without_it),
		CASE(forgets_groups_that_have_ended),
		CASE(does_no_harm_when_it_was_stopped_and_is_replaced),
		CASE(is_needed_to_launch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
