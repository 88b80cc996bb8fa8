#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/process_stage.h"

static void reads_every_byte_of_a_flood(void **state)
{
	struct process_stage *stage = *state;
	stage_run_script(stage, "head -c 50000000 /dev/zero; head -c 3000000 /dev/zero >&2");
	assert_int_equal(stage->seen.bytes[PROCESS_STDOUT], 50000000);
	assert_int_equal(stage->seen.bytes[PROCESS_STDERR], 3000000);
	assert_true(stage->seen.in_order);
	assert_int_equal(stage->seen.exit.exit_code, 0);
}

static void reads_on_when_nobody_watches(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "head -c 10000000 /dev/zero; echo done >&2", 'R');
	process_unwatch(&stage->seen.watch);
	uint64_t start = stage_now_ms();
	while (processes_alive(stage->processes) > 0 && stage_now_ms() - start < STAGE_WAIT_MS) {
		uv_run(&stage->loop, UV_RUN_ONCE);
	}
	assert_int_equal(processes_alive(stage->processes), 0);
	assert_int_equal(process_exit(stage->seen.process)->exit_code, 0);
}

static void rests_after_a_program_closed_its_output(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "exec >&- 2>&-; sleep 0.3; exit 3", 'R');
	unsigned turns = stage_run_until(stage, &stage->seen, 'x');
	assert_in_range(turns, 1, 10);
	assert_int_equal(stage->seen.exit.exit_code, 3);
}

static void waits_half_a_second_for_output_held_by_a_grandchild(void **state)
{
	struct process_stage *stage = *state;
	uint64_t start = stage_now_ms();
	stage_run_script(stage, "sleep 30 & echo $!; exit 4");
	uint64_t took = stage_now_ms() - start;
	pid_t grandchild = atoi(stage->seen.text);
	assert_in_range(took, 490, 5000);
	assert_int_equal(stage->seen.exit.exit_code, 4);
	assert_true(grandchild > 0);
	/* The leader ended by itself: its group is left alone. */
	assert_false(stage_is_gone(grandchild));
	kill(grandchild, SIGKILL);
}

static void passes_what_a_grandchild_still_writes(void **state)
{
	struct process_stage *stage = *state;
	stage_run_script(stage, "(sleep 0.1; echo late) & exit 0");
	assert_string_equal(stage->seen.text, "late\n");
}

static void passes_the_null_device_when_asked(void **state)
{
	struct process_stage *stage = *state;
	char path[] = "/tmp/profd-test-process-XXXXXX";
	char script[256], text[256] = "";
	close(mkstemp(path));
	/* The links are read before the file is opened. */
	snprintf(script, sizeof(script),
		"links=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); echo \"$links\" >%s", path);
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_NULL};
	stage_run(stage, &stage->seen, &options, 'x');
	assert_string_equal(stage->seen.told, "rRx");
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	unlink(path);
	assert_string_equal(text, "/dev/null\n/dev/null\n/dev/null\n");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reads_every_byte_of_a_flood),
		CASE(reads_on_when_nobody_watches),
		CASE(rests_after_a_program_closed_its_output),
		CASE(waits_half_a_second_for_output_held_by_a_grandchild),
		CASE(passes_what_a_grandchild_still_writes),
		CASE(passes_the_null_device_when_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
