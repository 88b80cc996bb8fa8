#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/process_stage.h"

static size_t give(struct process_stage *stage, const char *text, bool eof)
{
	size_t accepted = 0;
	assert_true(
		process_write(stage->seen.process, text, strlen(text), eof, &accepted, &stage->err));
	return accepted;
}

static void refuse(struct process_stage *stage, enum error_code code, const char *detail)
{
	size_t accepted = 77;
	assert_false(process_write(stage->seen.process, "x", 1, false, &accepted, &stage->err));
	assert_int_equal(stage->err.code, code);
	assert_string_equal(stage->err.detail, detail);
	assert_int_equal(accepted, 77);
}

static void gives_a_program_what_is_written_and_its_end(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "cat; echo end", 'R');
	assert_int_equal(give(stage, "one ", false), 4);
	stage_run_until(stage, &stage->seen, 'o');
	assert_string_equal(stage->seen.text, "one ");
	assert_int_equal(give(stage, "two\n", true), 4);
	refuse(stage, ERROR_BAD_PARAMS, "stdin_closed");
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.text, "one two\nend\n");
	refuse(stage, ERROR_BUILD_NOT_RUNNING, "");
}

static void gives_it_also_what_came_before_it_ran(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "cat");
	give(stage, "early", true);
	assert_true(process_resume(stage->seen.process, &stage->err));
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.text, "early");
}

static void takes_no_more_than_waits_without_harm_and_loses_nothing(void **state)
{
	struct process_stage *stage = *state;
	const size_t len = 3 * 1024 * 1024;
	char *bytes = malloc(len);
	size_t accepted = 0;
	memset(bytes, 'x', len);
	stage_launch_script_until(
		stage, "trap 'exec wc -c' USR1; echo up; while :; do sleep 0.01; done", 'o');
	assert_true(process_write(stage->seen.process, bytes, len, true, &accepted, &stage->err));
	/* The pipe's 64 KiB and the 1 MiB behind it; eof waits for all of it. */
	assert_int_equal(accepted, 65536 + LIMIT_INPUT_BYTES);
	size_t more = 77;
	assert_true(process_write(stage->seen.process, bytes, len, false, &more, &stage->err));
	assert_int_equal(more, 0);
	assert_true(process_signal(stage->seen.process, SIGUSR1, &stage->err));
	while (accepted < len) {
		uv_run(&stage->loop, UV_RUN_ONCE);
		assert_true(
			process_write(stage->seen.process, bytes, len - accepted, true, &more, &stage->err));
		accepted += more;
	}
	free(bytes);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.text, "up\n3145728\n");
}

static void says_that_a_program_has_closed_its_input(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "exec <&-; echo up; exec sleep 60", 'o');
	refuse(stage, ERROR_IO, "stdin_closed");
	refuse(stage, ERROR_IO, "stdin_closed");
	stage_stop(stage, SIGTERM, 5000);
	/* What waits when it goes is dropped. */
	stage_launch_script_until(stage, "sleep 0.2; exec <&-; echo up; exec sleep 60", 'R');
	char *bytes = calloc(1, LIMIT_INPUT_BYTES);
	size_t accepted = 0;
	assert_true(process_write(
		stage->seen.process, bytes, LIMIT_INPUT_BYTES, false, &accepted, &stage->err));
	free(bytes);
	stage_run_until(stage, &stage->seen, 'o');
	refuse(stage, ERROR_IO, "stdin_closed");
	stage_stop(stage, SIGTERM, 5000);
}

static void has_no_input_without_a_pipe_or_terminal(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"sleep", "60", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_NULL};
	stage_run(stage, &stage->seen, &options, 'R');
	refuse(stage, ERROR_UNSUPPORTED, "");
	assert_non_null(strstr(stage->err.message, "null"));
	struct process_piece piece;
	char bytes[8];
	assert_false(process_read_output(
		stage->seen.process, PROCESS_STDOUT, NULL, bytes, 8, &piece, &stage->err));
	assert_int_equal(stage->err.code, ERROR_UNSUPPORTED);
	assert_false(process_resize(stage->seen.process, 1, 1, &stage->err));
	assert_int_equal(stage->err.code, ERROR_UNSUPPORTED);
	stage_stop(stage, SIGTERM, 5000);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gives_a_program_what_is_written_and_its_end),
		CASE(gives_it_also_what_came_before_it_ran),
		CASE(takes_no_more_than_waits_without_harm_and_loses_nothing),
		CASE(says_that_a_program_has_closed_its_input),
		CASE(has_no_input_without_a_pipe_or_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
