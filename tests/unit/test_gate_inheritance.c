#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/gate_stage.h"

static uint64_t status_mask(const char *text, const char *name)
{
	const char *line = strstr(text, name);
	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 16);
}

static void gives_back_default_signals(void **state)
{
	struct gate_stage *stage = *state;
	/* The kernel's own record of the program, cat. 32 and 33 are those that libc hides. */
	unsigned long ignore[8] = {1}; /* SIG_IGN */
	unsigned long defaults[8] = {0};
	static const int signals[] = {SIGPIPE, SIGINT, SIGUSR1, 33, 40, 64};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_int_equal(syscall(SYS_rt_sigaction, signals[i], ignore, NULL, 8), 0);
	}
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGRTMAX);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	const char *argv[] = {"cat", "/proc/self/status", NULL};
	struct run run;
	stage_run_all(&run, stage_options(stage, argv));
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		syscall(SYS_rt_sigaction, signals[i], defaults, NULL, 8);
	}
	assert_int_equal(status_mask(run.text, "SigIgn:"), 0);
	assert_int_equal(status_mask(run.text, "SigBlk:"), 0);
	assert_int_equal(status_mask(run.text, "SigCgt:"), 0);
}

static void passes_no_descriptor_but_the_standard_ones(void **state)
{
	struct gate_stage *stage = *state;
	int inherited[] = {dup2(1, 5), dup2(1, 77), dup2(1, 500)}; /* not close-on-exec */
	/* ls sees its own descriptor of the folder as 3. */
	const char *argv[] = {"ls", "/proc/self/fd", NULL};
	struct run run;
	stage_run_all(&run, stage_options(stage, argv));
	for (size_t i = 0; i < 3; i++) {
		close(inherited[i]);
	}
	assert_string_equal(run.text, "0\n1\n2\n3\n");
}

static void restores_umask_limits_group_and_directory(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {
		"sh", "-c", "umask; ulimit -Sn; ulimit -Hn; pwd; cut -d' ' -f5 /proc/$$/stat", NULL};
	struct gate_options options = stage_options(stage, argv);
	options.umask_bits = 0027;
	options.nofile_soft = 128;
	options.nofile_hard = 256;
	options.new_group = true;
	options.profiler_pid = getpid();
	struct run run;
	stage_run_all(&run, options);
	char expected[PATH_MAX + 64];
	snprintf(
		expected, sizeof(expected), "0027\n128\n256\n%s\n%d\n", stage->folder, (int)run.gate.pid);
	assert_string_equal(run.text, expected);
}

static void stays_in_the_group_of_its_starter_when_not_told_otherwise(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	assert_int_equal(getpgid(run.gate.pid), getpgrp());
	stage_finish(&run);
}

static void crosses_standard_streams_as_asked(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
	int first[2], second[2];
	assert_int_equal(pipe2(first, O_CLOEXEC), 0);
	assert_int_equal(pipe2(second, O_CLOEXEC), 0);
	/* The sources stand on each other's targets. */
	int saved[2] = {fcntl(1, F_DUPFD_CLOEXEC, 10), fcntl(2, F_DUPFD_CLOEXEC, 10)};
	fflush(stdout);
	dup2(first[1], 1);
	dup2(second[1], 2);
	struct gate_options options = stage_options(stage, argv);
	options.stdio[1] = 2;
	options.stdio[2] = 1;
	struct gate gate = {.fd = -1};
	struct error err = {0};
	bool started = gate_start(&gate, &options, &err);
	dup2(saved[0], 1);
	dup2(saved[1], 2);
	assert_true(started);
	assert_int_equal(gate_wait(&gate, false, STAGE_WAIT_MS, &err), GATE_IS_READY);
	assert_true(gate_go(&gate, &err));
	waitpid(gate.pid, NULL, 0);
	gate_close(&gate);
	char text[2][8] = {"", ""};
	assert_int_equal(read(first[0], text[0], 7), 4);
	assert_int_equal(read(second[0], text[1], 7), 4);
	assert_string_equal(text[0], "err\n");
	assert_string_equal(text[1], "out\n");
	int all[] = {first[0], first[1], second[0], second[1], saved[0], saved[1]};
	for (size_t i = 0; i < 6; i++) {
		close(all[i]);
	}
}

static void works_for_an_owner_without_standard_input(void **state)
{
	struct gate_stage *stage = *state;
	const char *argv[] = {"sh", "-c", "echo fine", NULL};
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 10);
	close(0);
	struct run run;
	stage_run_all(&run, stage_options(stage, argv));
	dup2(saved, 0);
	close(saved);
	assert_string_equal(run.text, "fine\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_back_default_signals),
		cmocka_unit_test(passes_no_descriptor_but_the_standard_ones),
		cmocka_unit_test(restores_umask_limits_group_and_directory),
		cmocka_unit_test(stays_in_the_group_of_its_starter_when_not_told_otherwise),
		cmocka_unit_test(crosses_standard_streams_as_asked),
		cmocka_unit_test(works_for_an_owner_without_standard_input),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
