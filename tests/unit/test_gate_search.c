#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/programs.h"
#include "support/gate_stage.h"

struct refusal {
	const char *program;
	const char *cwd; /* NULL: the folder */
	bool before_ready;
	const char *detail;
	const char *mentions;
	int exit_code;
};

static void says_why_a_program_cannot_run(void **state)
{
	struct gate_stage *stage = *state;
	stage_write_file("plain", "#!/bin/sh\n", 0644);
	stage_write_file("nothing", "no program\n", 0755);
	stage_write_file("empty", "", 0755);
	stage_write_file("orphan", "#!/no/such/interpreter -x\n", 0755);
	stage_write_file("windows", "#!/bin/sh\r\necho\r\n", 0755);
	mkdir("sub", 0755);
	const struct refusal refusals[] = {
		{"no-such-program", NULL, true, "not_found", "PATH /usr/bin:/bin", 127},
		{"no-such-program", NULL, true, "not_found", "no-such-program", 127},
		{"./no-such-program", NULL, true, "not_found", "./no-such-program", 127},
		{"./plain/below", NULL, true, "not_found", "./plain/below", 127},
		{"./plain", NULL, true, "not_executable", "chmod +x", 126},
		{"/dev/null", NULL, true, "not_executable", "regular file", 126},
		{"./sub", NULL, true, "is_directory", "./sub is a directory", 126},
		{"./nothing", NULL, false, "not_executable", "#!", 126},
		{"./empty", NULL, false, "not_executable", "./empty", 126},
		{"./orphan", NULL, false, "no_interpreter", "/no/such/interpreter", 126},
		{"./windows", NULL, false, "no_interpreter", "carriage return", 126},
		{"sh", "/no/such/folder", true, "cwd", "/no/such/folder does not exist", 126},
		{"sh", "/dev/null", true, "cwd", "/dev/null is not a directory", 126},
	};
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *refusal = &refusals[i];
		const char *argv[] = {refusal->program, NULL};
		struct gate_options options = stage_options(stage, argv);
		options.cwd = refusal->cwd != NULL ? refusal->cwd : stage->folder;
		struct run run;
		stage_begin(&run, options);
		assert_int_equal(run.state, refusal->before_ready ? GATE_FAILED : GATE_IS_READY);
		if (run.state == GATE_IS_READY) {
			stage_go(&run);
		}
		assert_int_equal(run.state, GATE_FAILED);
		stage_finish(&run);
		assert_int_equal(run.err.code, ERROR_LAUNCH_FAILED);
		assert_string_equal(run.err.detail, refusal->detail);
		assert_non_null(strstr(run.err.message, refusal->mentions));
		assert_true(WIFEXITED(run.status));
		assert_int_equal(WEXITSTATUS(run.status), refusal->exit_code);
		assert_string_equal(run.text, "");
	}
}

static void says_that_the_program_went_while_it_waited(void **state)
{
	struct gate_stage *stage = *state;
	stage_write_file("shortlived", "#!/bin/sh\n", 0755);
	const char *argv[] = {"./shortlived", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	unlink("shortlived");
	stage_go(&run);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "not_found");
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_NOT_FOUND);
}

static void names_the_missing_loader_of_a_binary(void **state)
{
	struct gate_stage *stage = *state;
	/* A copy of a dynamic program, with another name of the same length in PT_INTERP. */
	static char bytes[4 << 20];
	int fd = open("/bin/ls", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, bytes, sizeof(bytes));
	close(fd);
	char *interpreter = len > 0 ? memmem(bytes, (size_t)len, "/ld-linux", 9) : NULL;
	if (interpreter == NULL) {
		skip();
	}
	memcpy(interpreter, "/no-linux", 9);
	fd = open("foreign", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, bytes, (size_t)len), len);
	close(fd);
	const char *argv[] = {"./foreign", NULL};
	struct run run;
	stage_begin(&run, stage_options(stage, argv));
	stage_go(&run);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "no_interpreter");
	assert_non_null(strstr(run.err.message, "/no-linux"));
	stage_finish(&run);
	assert_int_equal(WEXITSTATUS(run.status), GATE_EXIT_CANNOT_RUN);
}

static void searches_the_path_of_the_target(void **state)
{
	struct gate_stage *stage = *state;
	mkdir("first", 0755);
	mkdir("first/tool", 0755); /* a directory of that name is passed over */
	mkdir("second", 0755);
	stage_write_file("second/tool", "#!/bin/sh\necho second\n", 0644); /* and what may not run */
	mkdir("third", 0755);
	stage_write_file("third/tool", "#!/bin/sh\necho third\n", 0755);
	stage_write_file("tool", "#!/bin/sh\necho here\n", 0755);
	static const char *const searched[] = {"PATH=first:second:third", NULL};
	static const char *const empty_first[] = {"PATH=:third", NULL};
	static const char *const empty_last[] = {"PATH=first:", NULL};
	static const char *const none[] = {"HOME=/", NULL};
	static const char *const refused[] = {"PATH=second", NULL};
	const char *tool[] = {"tool", NULL};
	const char *echo[] = {"sh", "-c", "echo found", NULL};
	struct run run;
	struct gate_options options = stage_options(stage, tool);
	options.env = searched;
	stage_run_all(&run, options);
	assert_string_equal(run.text, "third\n");
	options.env = empty_first;
	stage_run_all(&run, options);
	assert_string_equal(run.text, "here\n");
	options.env = empty_last;
	stage_run_all(&run, options);
	assert_string_equal(run.text, "here\n");
	options.env = refused;
	stage_begin(&run, options);
	assert_int_equal(run.state, GATE_FAILED);
	assert_string_equal(run.err.detail, "not_executable");
	stage_finish(&run);
	options.argv = echo;
	options.env = none;
	stage_run_all(&run, options);
	assert_string_equal(run.text, "found\n");
}

static void finds_programs_by_variable_or_in_the_build_folder(void **state)
{
	struct gate_stage *stage = *state;
	char path[PATH_MAX];
	struct error err = {0};
	assert_int_equal(setenv("PROFD_GATE", "/bin/sh", 1), 0);
	assert_true(programs_find("profd-gate", path, sizeof(path), &err));
	assert_string_equal(path, "/bin/sh");
	/* One that is named is wanted: another in its place would be a surprise. */
	assert_int_equal(setenv("PROFD_GATE", "/no/such/gate", 1), 0);
	assert_false(programs_find("profd-gate", path, sizeof(path), &err));
	assert_non_null(strstr(err.message, "PROFD_GATE is /no/such/gate"));
	unsetenv("PROFD_GATE");
	assert_true(programs_find("profd-gate", path, sizeof(path), &err));
	assert_string_equal(path, stage->gate_path);
	strcpy(path, "untouched");
	assert_false(programs_find("profd-gate", path, 10, &err));
	assert_string_equal(path, "untouched");
	assert_string_equal(err.detail, "program_missing");
	assert_non_null(strstr(err.message, "daemon/profd-gate"));
	assert_non_null(strstr(err.hint, "PROFD_GATE"));
	assert_false(programs_find("no-program", path, sizeof(path), &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_why_a_program_cannot_run),
		cmocka_unit_test(says_that_the_program_went_while_it_waited),
		cmocka_unit_test(names_the_missing_loader_of_a_binary),
		cmocka_unit_test(searches_the_path_of_the_target),
		cmocka_unit_test(finds_programs_by_variable_or_in_the_build_folder),
	};
	return cmocka_run_group_tests(tests, stage_set_up, stage_tear_down);
}
