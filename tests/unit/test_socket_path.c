#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/names.h"
#include "protocol/socket_path.h"

/* A fresh folder of ours, mode 0700, for each test. */
struct fixture {
	char folder[64];
	char path[SOCKET_PATH_BYTES];
	char text[256];
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	strcpy(fixture->folder, "/tmp/profd-path-XXXXXX");
	if (mkdtemp(fixture->folder) == NULL) {
		return -1;
	}
	unsetenv(ENV_SOCKET);
	unsetenv("XDG_RUNTIME_DIR");
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	int rc = system(command);
	free(fixture);
	return rc;
}

static const char *inside(struct fixture *fixture, const char *name)
{
	snprintf(fixture->text, sizeof(fixture->text), "%s/%s", fixture->folder, name);
	return fixture->text;
}

static void the_given_path_wins(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	setenv(ENV_SOCKET, "/from/environment", 1);
	assert_true(socket_path_find("/given/x.sock", fixture->path, &err));
	assert_string_equal(fixture->path, "/given/x.sock");
	assert_true(socket_path_find(NULL, fixture->path, &err));
	assert_string_equal(fixture->path, "/from/environment");
}

static void a_relative_path_is_meant_from_the_working_folder(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char before[4096];
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(fixture->folder), 0);
	assert_true(socket_path_find("x.sock", fixture->path, &err));
	assert_int_equal(chdir(before), 0);
	assert_string_equal(fixture->path, inside(fixture, "x.sock"));
}

static void uses_the_runtime_folder_only_when_it_is_private(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char fallback[64];
	snprintf(fallback, sizeof(fallback), "/tmp/profd-%u/profd.sock", (unsigned)geteuid());
	setenv("XDG_RUNTIME_DIR", fixture->folder, 1);
	assert_true(socket_path_find(NULL, fixture->path, &err));
	assert_string_equal(fixture->path, inside(fixture, "profd/profd.sock"));
	assert_int_equal(chmod(fixture->folder, 0750), 0);
	assert_true(socket_path_find(NULL, fixture->path, &err));
	assert_string_equal(fixture->path, fallback);
	setenv("XDG_RUNTIME_DIR", inside(fixture, "missing"), 1);
	assert_true(socket_path_find(NULL, fixture->path, &err));
	assert_string_equal(fixture->path, fallback);
	unsetenv("XDG_RUNTIME_DIR");
	assert_true(socket_path_find(NULL, fixture->path, &err));
	assert_string_equal(fixture->path, fallback);
}

static void refuses_a_path_that_does_not_fit_and_says_both_lengths(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char given[SOCKET_PATH_BYTES + 1];
	memset(given, 'a', sizeof(given));
	given[0] = '/';
	given[SOCKET_PATH_BYTES - 1] = '\0';
	assert_true(socket_path_find(given, fixture->path, &err));
	assert_string_equal(fixture->path, given);
	given[SOCKET_PATH_BYTES - 1] = 'a';
	given[SOCKET_PATH_BYTES] = '\0';
	assert_false(socket_path_find(given, fixture->path, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_non_null(strstr(err.message, "has 108 bytes, a socket's path at most 107"));
}

static void refuses_paths_that_name_no_file(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_false(socket_path_find("", fixture->path, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_false(socket_path_find("/tmp/", fixture->path, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
}

static void makes_the_folder_private_whatever_the_umask(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct stat status;
	mode_t before = umask(0);
	bool ok = socket_path_prepare(inside(fixture, "run/x.sock"), &err);
	umask(before);
	assert_true(ok);
	assert_int_equal(stat(inside(fixture, "run"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_true(socket_path_prepare(inside(fixture, "run/x.sock"), &err));
}

static void refuses_a_folder_open_to_others_with_the_remedy(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char remedy[128];
	snprintf(remedy, sizeof(remedy), "chmod 700 %s, unless others need it", fixture->folder);
	assert_int_equal(chmod(fixture->folder, 0710), 0);
	assert_false(socket_path_prepare(inside(fixture, "x.sock"), &err));
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, "mode 0710"));
	assert_ptr_equal(strstr(err.hint, remedy), err.hint);
	/* Nobody is told to close what everybody needs. */
	assert_false(socket_path_prepare("/tmp/x.sock", &err));
	assert_null(strstr(err.hint, "chmod"));
}

static void refuses_a_folder_of_somebody_else(void **state)
{
	(void)state;
	struct error err = {0};
	if (geteuid() == 0) {
		/* As root every folder that is not root's will do. */
		struct fixture *fixture = *state;
		assert_int_equal(chown(fixture->folder, 65534, 65534), 0);
		assert_false(socket_path_prepare(inside(fixture, "x.sock"), &err));
	} else {
		assert_false(socket_path_prepare("/etc/x.sock", &err));
	}
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, "belongs to user"));
}

static void refuses_a_link_or_a_file_in_the_folders_place(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_int_equal(mkdir(inside(fixture, "real"), 0700), 0);
	assert_int_equal(symlink("real", inside(fixture, "link")), 0);
	assert_false(socket_path_prepare(inside(fixture, "link/x.sock"), &err));
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, "is a symbolic link"));
	fclose(fopen(inside(fixture, "file"), "w"));
	assert_false(socket_path_prepare(inside(fixture, "file/x.sock"), &err));
	assert_non_null(strstr(err.message, "not a folder"));
}

static void names_the_folder_that_cannot_be_made(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_false(socket_path_prepare(inside(fixture, "a/b/x.sock"), &err));
	assert_int_equal(err.code, ERROR_IO);
	assert_string_equal(err.detail, "enoent");
	assert_non_null(strstr(err.message, inside(fixture, "a/b")));
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void connects_to_a_daemon_of_ours(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	int listener = listen_at(inside(fixture, "x.sock"));
	int fd = socket_path_connect(inside(fixture, "x.sock"), &err);
	assert_true(fd >= 0);
	int other = accept(listener, NULL, NULL);
	assert_int_equal(write(fd, "x", 1), 1);
	char byte = 0;
	assert_int_equal(read(other, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(other);
	close(fd);
	close(listener);
}

static void tells_when_nobody_listens(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_int_equal(socket_path_connect(inside(fixture, "x.sock"), &err), -1);
	assert_int_equal(err.code, ERROR_IO);
	assert_string_equal(err.detail, "not_running");
	close(listen_at(inside(fixture, "x.sock")));
	err = (struct error){0};
	assert_int_equal(socket_path_connect(inside(fixture, "x.sock"), &err), -1);
	assert_string_equal(err.detail, "not_running");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_given_path_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_relative_path_is_meant_from_the_working_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(
			uses_the_runtime_folder_only_when_it_is_private, setup, teardown),
		cmocka_unit_test_setup_teardown(
			refuses_a_path_that_does_not_fit_and_says_both_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_paths_that_name_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			makes_the_folder_private_whatever_the_umask, setup, teardown),
		cmocka_unit_test_setup_teardown(
			refuses_a_folder_open_to_others_with_the_remedy, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_a_folder_of_somebody_else, setup, teardown),
		cmocka_unit_test_setup_teardown(
			refuses_a_link_or_a_file_in_the_folders_place, setup, teardown),
		cmocka_unit_test_setup_teardown(names_the_folder_that_cannot_be_made, setup, teardown),
		cmocka_unit_test_setup_teardown(connects_to_a_daemon_of_ours, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_when_nobody_listens, setup, teardown),
	};
	return cmocka_run_group_tests_name("socket_path", tests, NULL, NULL);
}
