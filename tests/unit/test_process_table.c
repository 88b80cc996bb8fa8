#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "support/descriptors.h"
#include "support/process_stage.h"

static void takes_a_number_and_its_text_for_one_build(void **state)
{
	struct process_stage *stage = *state;
	json_t *number = json_integer(7);
	json_t *text = json_string("7");
	const char *argv[] = {"sleep", "30", NULL};
	struct process_options options = {.build_id = number, .argv = argv};
	struct seen first, second;
	assert_true(stage_launch(stage, &first, &options));
	options.build_id = text;
	assert_false(stage_launch(stage, &second, &options));
	assert_int_equal(second.err.code, ERROR_BUILD_EXISTS);
	assert_ptr_equal(processes_find(stage->processes, text, &stage->err), first.process);
	assert_true(json_is_integer(process_build_id(first.process)));
	stage_run_until(stage, &first, 'R');
	process_stop(first.process, SIGKILL, 0, &stage->err);
	stage_run_until(stage, &first, 'x');
	/* It may be used again now, and means the newest. */
	assert_true(stage_launch(stage, &second, &options));
	assert_ptr_equal(processes_find(stage->processes, number, &stage->err), second.process);
	assert_true(json_is_string(process_build_id(second.process)));
	assert_ptr_equal(processes_next(stage->processes, NULL), first.process);
	assert_ptr_equal(processes_next(stage->processes, first.process), second.process);
	assert_null(processes_next(stage->processes, second.process));
	stage_run_until(stage, &second, 'R');
	process_stop(second.process, SIGKILL, 0, &stage->err);
	stage_run_until(stage, &second, 'x');
	json_decref(number);
	json_decref(text);
}

static void makes_build_ids_that_are_not_in_use(void **state)
{
	struct process_stage *stage = *state;
	json_t *taken = json_integer(2);
	const char *argv[] = {"true", NULL};
	struct process_options options = {.build_id = taken, .argv = argv};
	struct seen seen[3];
	assert_true(stage_launch(stage, &seen[0], &options));
	options.build_id = NULL;
	assert_true(stage_launch(stage, &seen[1], &options));
	assert_true(stage_launch(stage, &seen[2], &options));
	assert_string_equal(process_key(seen[1].process), "1");
	assert_string_equal(process_key(seen[2].process), "3");
	assert_string_equal(json_string_value(process_build_id(seen[2].process)), "3");
	for (int i = 0; i < 3; i++) {
		stage_run_until(stage, &seen[i], 'x');
	}
	json_decref(taken);
}

/* Rounds of 20 programs at once, each of which must be told of like this; no round leaves anything. */
static void launch_rounds(
	struct process_stage *stage, const char *program, int rounds, const char *told)
{
	enum { TOGETHER = 20 };
	static struct seen seen[TOGETHER];
	const char *argv[] = {program, NULL};
	const struct process_options options = {.argv = argv};
	stage_run_script(stage, "true");
	size_t before = descriptors_open();
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < TOGETHER; i++) {
			assert_true(stage_launch(stage, &seen[i], &options));
		}
		for (int i = 0; i < TOGETHER; i++) {
			stage_run_until(stage, &seen[i], told[strlen(told) - 1]);
			assert_string_equal(seen[i].told, told);
			assert_int_equal(seen[i].exit.exit_code, 0);
		}
		assert_int_equal(descriptors_open(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
}

static void leaves_nothing_after_many_launches(void **state)
{
	launch_rounds(*state, "/bin/true", 10, "rRx");
}

static void leaves_nothing_after_many_failures(void **state)
{
	launch_rounds(*state, "./no-such-program", 3, "f");
}

static void leaves_nothing_when_descriptors_run_out(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv};
	struct rlimit old;
	stage_run_script(stage, "true");
	size_t before = descriptors_open();
	int lowest = dup(1);
	close(lowest);
	getrlimit(RLIMIT_NOFILE, &old);
	int refused = 0;
	for (int more = 0; more < 16; more++) {
		struct rlimit tight = {(rlim_t)(lowest + more), old.rlim_max};
		setrlimit(RLIMIT_NOFILE, &tight);
		bool launched = stage_launch(stage, &stage->seen, &options);
		setrlimit(RLIMIT_NOFILE, &old);
		if (launched) {
			stage_run_until(stage, &stage->seen, 'x');
		} else {
			refused++;
			uv_run(&stage->loop, UV_RUN_NOWAIT);
		}
		assert_int_equal(descriptors_open(), before);
		assert_int_equal(processes_alive(stage->processes), 0);
	}
	assert_in_range(refused, 5, 15);
}

static void takes_no_more_than_its_limit(void **state)
{
	struct process_stage *stage = *state;
	static struct seen seen[LIMIT_BUILDS];
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .hold = true};
	struct seen extra;
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		assert_true(stage_launch(stage, &seen[i], &options));
	}
	assert_false(stage_launch(stage, &extra, &options));
	assert_int_equal(extra.err.code, ERROR_LIMIT_EXCEEDED);
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		stage_run_until(stage, &seen[i], 'r');
	}
	processes_stop_all(stage->processes, SIGTERM, 5000);
	for (int i = 0; i < LIMIT_BUILDS; i++) {
		stage_run_until(stage, &seen[i], 'x');
	}
	assert_int_equal(processes_alive(stage->processes), 0);
	stage_run(stage, &extra, &options, 'r');
	process_stop(extra.process, SIGTERM, 0, NULL);
	stage_run_until(stage, &extra, 'x');
}

static size_t remembered(struct process_stage *stage)
{
	size_t count = 0;
	struct process *process = NULL;
	while ((process = processes_next(stage->processes, process)) != NULL) {
		count++;
	}
	return count;
}

static void remembers_the_newest_exited_ones(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_NULL};
	struct seen keeper;
	json_t *first = json_string("1");
	json_t *second = json_string("2");
	seen_prepare(&keeper);
	for (int i = 0; i < LIMIT_EXITED_BUILDS + 10; i++) {
		stage_run(stage, &stage->seen, &options, 'x');
		if (i == 0) {
			process_watch(stage->seen.process, &keeper.watch);
		}
	}
	uv_run(&stage->loop, UV_RUN_NOWAIT);
	assert_int_equal(remembered(stage), LIMIT_EXITED_BUILDS);
	assert_non_null(processes_find(stage->processes, first, NULL)); /* somebody watches it */
	assert_null(processes_find(stage->processes, second, NULL));
	process_unwatch(&keeper.watch);
	stage_run(stage, &stage->seen, &options, 'x');
	uv_run(&stage->loop, UV_RUN_NOWAIT);
	assert_null(processes_find(stage->processes, first, NULL));
	assert_string_equal(keeper.told, "");
	json_decref(first);
	json_decref(second);
}

static void kills_what_lives_when_the_table_goes(void **state)
{
	struct process_stage *stage = *state;
	stage_launch_script_until(stage, "echo up; sleep 30", 'o');
	pid_t pid = process_pid(stage->seen.process);
	processes_destroy(stage->processes);
	stage->processes = processes_create(&stage->loop, stage->gate_path, &stage->err);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_null(stage->seen.watch.process);
	assert_null(strchr(stage->seen.told, 'x'));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(takes_a_number_and_its_text_for_one_build),
		CASE(makes_build_ids_that_are_not_in_use),
		CASE(leaves_nothing_after_many_launches),
		CASE(leaves_nothing_after_many_failures),
		CASE(leaves_nothing_when_descriptors_run_out),
		CASE(takes_no_more_than_its_limit),
		CASE(remembers_the_newest_exited_ones),
		CASE(kills_what_lives_when_the_table_goes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
