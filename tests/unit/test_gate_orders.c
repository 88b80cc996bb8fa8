#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "support/gate_stage.h"

static void set(struct run *run, const char *name, const char *value)
{
	assert_true(gate_set(&run->gate, name, value, &run->err));
}

static void what_is_set_is_in_the_programs_environment(void **state)
{
	const char *argv[] = {"/usr/bin/env", NULL};
	struct run run;
	stage_begin(&run, stage_options(*state, argv));
	assert_int_equal(run.state, GATE_IS_READY);
	set(&run, "LC_ALL", "POSIX");
	set(&run, "NEW", "a=b\nset c");
	set(&run, "LC", "");
	set(&run, "NEW", "last");
	set(&run, "EMPTY", "");
	stage_go(&run);
	assert_int_equal(run.state, GATE_RUNNING);
	stage_finish(&run);
	/* The kernel's order: what was there keeps its place. */
	assert_string_equal(run.text, "PATH=/usr/bin:/bin\nLC_ALL=POSIX\nNEW=last\nLC=\nEMPTY=\n");
}

static void a_line_end_in_a_value_is_kept(void **state)
{
	const char *argv[] = {"sh", "-c", "printf %s \"$NEW\"", NULL};
	struct run run;
	stage_begin(&run, stage_options(*state, argv));
	set(&run, "NEW", "go\nset x\n\x01\xff");
	stage_go(&run);
	stage_finish(&run);
	assert_string_equal(run.text, "go\nset x\n\x01\xff");
}

static void without_a_set_the_environment_is_as_it_was(void **state)
{
	const char *argv[] = {"/usr/bin/env", NULL};
	struct run run;
	stage_run_all(&run, stage_options(*state, argv));
	assert_string_equal(run.text, "PATH=/usr/bin:/bin\nLC_ALL=C\n");
}

/* What the linker would load into the gate itself is only the program's. */
static void a_preload_that_is_set_reaches_the_program_alone(void **state)
{
	const char *argv[] = {"/bin/true", NULL};
	struct run run;
	stage_begin(&run, stage_options(*state, argv));
	set(&run, "LD_PRELOAD", "/nowhere/preload.so");
	stage_go(&run);
	assert_int_equal(run.state, GATE_RUNNING);
	stage_finish(&run);
	assert_non_null(strstr(run.text, "/nowhere/preload.so"));
}

static void as_many_and_as_much_as_the_contract_says(void **state)
{
	const char *argv[] = {"sh", "-c", "echo ${#V0} $V62 $V63", NULL};
	struct run run;
	char name[8], value[8];
	/* Of one variable the kernel takes 128 KiB (MAX_ARG_STRLEN). */
	char *large = calloc(1, 128 * 1024);
	memset(large, 'x', 128 * 1024 - 8);
	stage_begin(&run, stage_options(*state, argv));
	set(&run, "V0", large);
	for (int i = 1; i < GATE_SETS; i++) {
		snprintf(name, sizeof(name), "V%d", i);
		snprintf(value, sizeof(value), "%d", i);
		set(&run, name, value);
	}
	stage_go(&run);
	assert_int_equal(run.state, GATE_RUNNING);
	stage_finish(&run);
	assert_string_equal(run.text, "131064 62 63\n");
	free(large);
}

/* Sets until the gate says no; what it says is an error of the stage environment. */
static void assert_refused(void **state, const char *value, int times)
{
	const char *argv[] = {"true", NULL};
	struct run run;
	bool ok = true;
	stage_begin(&run, stage_options(*state, argv));
	for (int i = 0; ok && i < times; i++) {
		ok = gate_set(&run.gate, "V", value, &run.err);
	}
	if (ok) {
		assert_int_equal(gate_wait(&run.gate, false, STAGE_WAIT_MS, &run.err), GATE_FAILED);
	}
	assert_string_equal(run.err.detail, "environment");
	assert_non_null(strstr(run.err.message, "64 variables or 262144 bytes"));
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_CANNOT_RUN);
}

static void more_is_refused_and_nothing_runs(void **state)
{
	char *large = calloc(1, GATE_SET_BYTES);
	assert_refused(state, "", GATE_SETS + 1);
	memset(large, 'x', GATE_SET_BYTES - 1);
	assert_refused(state, large, 1);
	large[GATE_SET_BYTES / 2] = '\0';
	assert_refused(state, large, 2);
	free(large);
}

static void what_is_no_variable_is_refused(void **state)
{
	static const char *const wrong[] = {"set =x", "set x", "set "};
	const char *argv[] = {"true", NULL};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run run;
		stage_begin(&run, stage_options(*state, argv));
		size_t len = strlen(wrong[i]) + 1;
		assert_int_equal(send(run.gate.fd, wrong[i], len, MSG_NOSIGNAL), (ssize_t)len);
		assert_int_equal(gate_wait(&run.gate, false, STAGE_WAIT_MS, &run.err), GATE_FAILED);
		assert_string_equal(run.err.detail, "environment");
		stage_finish(&run);
		assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_CANNOT_RUN);
	}
}

static void exits_with_125_at_words_that_are_none(void **state)
{
	static const char *const wrong[] = {"setx=y", "s", "set V=x", "gx", "\n", "SET V=x"};
	const char *argv[] = {"sh", "-c", "echo ran", NULL};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct run run;
		stage_begin(&run, stage_options(*state, argv));
		assert_int_equal(
			send(run.gate.fd, wrong[i], strlen(wrong[i]), MSG_NOSIGNAL), (ssize_t)strlen(wrong[i]));
		stage_finish(&run);
		assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NO_GO);
		assert_string_equal(run.text, "");
	}
}

static void a_gate_that_is_gone_takes_nothing(void **state)
{
	const char *argv[] = {"true", NULL};
	struct run run;
	stage_begin(&run, stage_options(*state, argv));
	kill(run.gate.pid, SIGKILL);
	assert_int_equal(gate_wait(&run.gate, false, STAGE_WAIT_MS, &run.err), GATE_FAILED);
	run.err = (struct error){0};
	assert_false(gate_set(&run.gate, "V", "x", &run.err));
	assert_string_equal(run.err.detail, "gate_died");
	stage_finish(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_in_the_programs_environment),
		cmocka_unit_test(a_line_end_in_a_value_is_kept),
		cmocka_unit_test(without_a_set_the_environment_is_as_it_was),
		cmocka_unit_test(a_preload_that_is_set_reaches_the_program_alone),
		cmocka_unit_test(as_many_and_as_much_as_the_contract_says),
		cmocka_unit_test(more_is_refused_and_nothing_runs),
		cmocka_unit_test(what_is_no_variable_is_refused),
		cmocka_unit_test(exits_with_125_at_words_that_are_none),
		cmocka_unit_test(a_gate_that_is_gone_takes_nothing),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
