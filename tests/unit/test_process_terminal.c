#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process_stage.h"

static void launch(struct process_stage *stage, const char *script, char what)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_PTY};
	stage_run(stage, &stage->seen, &options, what);
}

static void type(struct process_stage *stage, const char *text, bool eof)
{
	size_t accepted = 0;
	assert_true(
		process_write(stage->seen.process, text, strlen(text), eof, &accepted, &stage->err));
	assert_int_equal(accepted, strlen(text));
}

static void is_a_session_of_its_own_with_a_terminal(void **state)
{
	struct process_stage *stage = *state;
	/* Session, group, foreground group of the terminal (proc_pid_stat(5)): all of them the program's own number. */
	launch(stage,
		"cut -d' ' -f5,6,8 /proc/$$/stat; echo $$; stty size; echo err >&2; test -t 0 && echo tty",
		'x');
	char expected[128];
	int pid = (int)process_pid(stage->seen.process);
	snprintf(expected, sizeof(expected), "%d %d %d\r\n%d\r\n24 80\r\nerr\r\ntty\r\n", pid, pid, pid,
		pid);
	assert_string_equal(stage->seen.text, expected);
	assert_int_equal(stage->seen.bytes[PROCESS_STDERR], 0);
	assert_int_equal(stage->seen.exit.exit_code, 0);
	assert_int_not_equal(getsid(0), pid);
}

static void is_told_of_another_size(void **state)
{
	struct process_stage *stage = *state;
	launch(stage, "trap 'stty size; exit 0' WINCH; echo up; while :; do sleep 0.02; done", 'o');
	assert_true(process_resize(stage->seen.process, 50, 132, &stage->err));
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.text, "up\r\n50 132\r\n");
	assert_false(process_resize(stage->seen.process, 50, 132, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BUILD_NOT_RUNNING);
}

static void reads_lines_until_the_character_that_ends_them(void **state)
{
	struct process_stage *stage = *state;
	launch(stage, "stty -echo eof Z; echo up; cat; echo end", 'o');
	type(stage, "line\n", true);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.text, "up\r\nline\r\nend\r\n");
	/* Without such a character nothing is sent that would be read as something else. */
	launch(stage, "stty -echo eof undef; echo up; exec sleep 60", 'o');
	size_t accepted = 0;
	assert_false(process_write(stage->seen.process, "", 0, true, &accepted, &stage->err));
	assert_int_equal(stage->err.code, ERROR_UNSUPPORTED);
	stage_stop(stage, SIGTERM, 5000);
}

static void is_interrupted_by_its_terminal(void **state)
{
	struct process_stage *stage = *state;
	launch(stage, "echo up; exec sleep 60", 'o');
	type(stage, "\003", false);
	stage_run_until(stage, &stage->seen, 'x');
	assert_int_equal(stage->seen.exit.signal, SIGINT);
}

static void lives_on_when_it_closes_its_terminal_and_may_open_it_again(void **state)
{
	struct process_stage *stage = *state;
	launch(stage, "exec </dev/null >/dev/null 2>&1; sleep 0.2; echo again >/dev/tty", 'x');
	assert_int_equal(stage->seen.exit.exit_code, 0);
	assert_string_equal(stage->seen.text, "again\r\n");
}

static void is_stopped_as_a_group(void **state)
{
	struct process_stage *stage = *state;
	launch(stage, "trap '' HUP; (trap '' TERM HUP; exec sleep 60) & echo up; wait", 'o');
	assert_true(stage_stop(stage, SIGTERM, 300) < 5000);
	assert_int_equal(stage->seen.exit.signal, SIGTERM);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(is_a_session_of_its_own_with_a_terminal),
		CASE(is_told_of_another_size),
		CASE(reads_lines_until_the_character_that_ends_them),
		CASE(is_interrupted_by_its_terminal),
		CASE(lives_on_when_it_closes_its_terminal_and_may_open_it_again),
		CASE(is_stopped_as_a_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
