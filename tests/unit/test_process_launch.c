#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/environment.h"
#include "protocol/limits.h"
#include "support/process_stage.h"

static void forgets_at_once_what_never_ran(void **state)
{
	struct process_stage *stage = *state;
	const char *missing[] = {"no-such-program", NULL};
	const char *orphan[] = {"./orphan", NULL};
	json_t *id = json_string("mine");
	struct process_options options = {.build_id = id, .argv = missing};
	stage_run(stage, &stage->seen, &options, 'f');
	assert_string_equal(stage->seen.told, "f");
	assert_int_equal(stage->seen.err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(stage->seen.err.detail, "not_found");
	assert_null(processes_find(stage->processes, id, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BUILD_NOT_FOUND);
	assert_null(processes_next(stage->processes, NULL));

	char folder[] = "/tmp/profd-test-process-XXXXXX";
	char script[64];
	assert_non_null(mkdtemp(folder));
	snprintf(script, sizeof(script), "%s/orphan", folder);
	int fd = open(script, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "#!/no/such/thing\n", 17), 17);
	close(fd);
	options.argv = orphan;
	options.cwd = folder;
	stage_run(stage, &stage->seen, &options, 'f');
	assert_string_equal(stage->seen.told, "rf");
	assert_string_equal(stage->seen.err.detail, "no_interpreter");
	assert_int_equal(processes_alive(stage->processes), 0);
	unlink(script);
	rmdir(folder);
	json_decref(id);
}

static void refuses_what_cannot_be_launched_and_keeps_nothing(void **state)
{
	struct process_stage *stage = *state;
	const char *nothing[] = {NULL};
	const char *empty[] = {"", NULL};
	const char *good[] = {"true", NULL};
	const char *nameless[] = {"=value", NULL};
	json_t *long_id = json_stringn("", 0);
	const struct process_options bad[] = {
		{.argv = nothing},
		{.argv = empty},
		{.argv = good, .cwd = "relative"},
		{.argv = good, .env = nameless},
		{.argv = good, .build_id = long_id},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(stage_launch(stage, &stage->seen, &bad[i]));
		assert_int_equal(stage->seen.err.code, ERROR_BAD_PARAMS);
		assert_null(stage->seen.watch.process);
	}
	json_decref(long_id);
	assert_null(processes_next(stage->processes, NULL));
	assert_int_equal(processes_alive(stage->processes), 0);
}

static void refuses_to_launch_without_a_gate(void **state)
{
	struct process_stage *stage = *state;
	struct processes *other = processes_create(&stage->loop, "/no/such/gate", &stage->err);
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv};
	seen_prepare(&stage->seen);
	assert_null(processes_launch(other, &options, &stage->seen.watch, &stage->err));
	assert_int_equal(stage->err.code, ERROR_LAUNCH_FAILED);
	assert_non_null(strstr(stage->err.message, "/no/such/gate"));
	assert_int_equal(processes_alive(other), 0);
	processes_destroy(other);
}

static void fails_when_the_gate_is_killed_while_it_waits(void **state)
{
	struct process_stage *stage = *state;
	stage_hold_script(stage, "echo ran");
	kill(process_pid(stage->seen.process), SIGKILL);
	stage_run_until(stage, &stage->seen, 'x');
	assert_string_equal(stage->seen.told, "rx");
	assert_int_equal(stage->seen.exit.signal, SIGKILL);
	assert_non_null(process_launch_error(stage->seen.process));
	assert_string_equal(process_launch_error(stage->seen.process)->detail, "gate_died");
}

static void lays_changes_over_its_own_environment(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"env", NULL};
	const char *changes[] = {"ADDED=1", "ADDED=2", "REPLACED=new", "REMOVED", "EMPTY=", NULL};
	setenv("REPLACED", "old", 1);
	setenv("REMOVED", "old", 1);
	setenv("KEPT", "kept", 1);
	setenv("NOTIFY_SOCKET", "private", 1);
	setenv("LISTEN_FDS", "private", 1);
	setenv("PROFD_ANYTHING", "private", 1);
	const struct process_options options = {.argv = argv, .env = changes};
	stage_run(stage, &stage->seen, &options, 'x');
	assert_non_null(strstr(stage->seen.text, "ADDED=2\n"));
	assert_null(strstr(stage->seen.text, "ADDED=1\n"));
	assert_non_null(strstr(stage->seen.text, "REPLACED=new\n"));
	assert_null(strstr(stage->seen.text, "REMOVED"));
	assert_non_null(strstr(stage->seen.text, "KEPT=kept\n"));
	assert_non_null(strstr(stage->seen.text, "EMPTY=\n"));
	assert_null(strstr(stage->seen.text, "private"));
	unsetenv("NOTIFY_SOCKET");
	unsetenv("LISTEN_FDS");
	unsetenv("PROFD_ANYTHING");
}

static void gives_exactly_the_environment_asked_for(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"env", NULL};
	const char *exact[] = {"B=2", "PROFD_SOCKET=/x", "A=1", NULL};
	const struct process_options options = {.argv = argv, .env = exact, .env_exact = true};
	stage_run(stage, &stage->seen, &options, 'x');
	assert_string_equal(stage->seen.text, "A=1\nB=2\nPROFD_SOCKET=/x\n");
}

static void bounds_the_environment_and_its_time(void **state)
{
	struct process_stage *stage = *state;
	const char **changes = calloc(LIMIT_ENVIRONMENT + 2, sizeof(*changes));
	for (size_t i = 0; i < LIMIT_ENVIRONMENT; i++) {
		changes[i] = i % 2 == 0 ? "SAME=1" : "SAMES=2";
	}
	char **environment = environment_create(NULL, changes, &stage->err);
	assert_non_null(environment);
	assert_string_equal(environment[0], "SAME=1");
	assert_string_equal(environment[1], "SAMES=2");
	assert_null(environment[2]);
	free(environment);
	changes[LIMIT_ENVIRONMENT] = "ONE=more";
	assert_null(environment_create(NULL, changes, &stage->err));
	assert_int_equal(stage->err.code, ERROR_BAD_PARAMS);
	free(changes);
}

static void gives_programs_back_the_limits_from_before(void **state)
{
	struct process_stage *stage = *state;
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	processes_set_nofile(stage->processes, 77, (long)limit.rlim_max);
	processes_set_umask(stage->processes, 0026);
	stage_run_script(stage, "ulimit -Sn; umask");
	assert_string_equal(stage->seen.text, "77\n0026\n");
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, stage_set_up, stage_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(forgets_at_once_what_never_ran),
		CASE(refuses_what_cannot_be_launched_and_keeps_nothing),
		CASE(refuses_to_launch_without_a_gate),
		CASE(fails_when_the_gate_is_killed_while_it_waits),
		CASE(lays_changes_over_its_own_environment),
		CASE(gives_exactly_the_environment_asked_for),
		CASE(bounds_the_environment_and_its_time),
		CASE(gives_programs_back_the_limits_from_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
