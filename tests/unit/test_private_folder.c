#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/private_folder.h"
#include "support/entries.h"

static char runtime[] = "/tmp/profd-run-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	strcpy(runtime, "/tmp/profd-run-XXXXXX");
	assert_non_null(mkdtemp(runtime));
	return setenv("XDG_RUNTIME_DIR", runtime, 1);
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(runtime);
}

static bool is_there(const char *path)
{
	struct stat status;
	return lstat(path, &status) == 0;
}

static int make(char path[PRIVATE_FOLDER_BYTES])
{
	struct error err = {0};
	int fd = private_folder_make(path, &err);
	assert_true(fd >= 0);
	assert_memory_equal(path, runtime, strlen(runtime));
	return fd;
}

static void put_file(const char *folder, const char *name)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void is_ours_alone_and_goes_with_all_that_is_in_it(void **state)
{
	char path[PRIVATE_FOLDER_BYTES];
	struct stat status;
	(void)state;
	int fd = make(path);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	put_file(path, "something");
	private_folder_remove(path);
	close(fd);
	assert_int_equal(entries_count(runtime), 0);
}

static void is_left_alone_while_its_daemon_lives_and_swept_afterwards(void **state)
{
	char used[PRIVATE_FOLDER_BYTES], left[PRIVATE_FOLDER_BYTES];
	(void)state;
	int fd = make(used), other = make(left);
	put_file(left, "socket");
	close(other); /* as the kernel does at the daemon's end */
	assert_true(private_folder_sweep() >= 1);
	assert_true(is_there(used) && !is_there(left));
	private_folder_remove(used);
	close(fd);
}

static void what_is_not_known_to_be_ours_is_not_swept(void **state)
{
	char path[128], link[128], lock[160];
	(void)state;
	/* Without a lock, with another name, open to others, and a link. */
	static const char *const names[] = {
		"profd-gpu-abcdef", "profd-gpu-abcdefgh", "profd-gpu-ghijkl"};
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", runtime, names[i]);
		assert_int_equal(mkdir(path, i == 2 ? 0755 : 0700), 0);
		if (i > 0) {
			put_file(path, "owner");
		}
	}
	snprintf(path, sizeof(path), "%s/%s", runtime, names[1]);
	snprintf(link, sizeof(link), "%s/profd-gpu-mnopqr", runtime);
	assert_int_equal(symlink(path, link), 0);
	private_folder_sweep();
	assert_int_equal(entries_count(runtime), 4);
	unlink(link);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", runtime, names[i]);
		snprintf(lock, sizeof(lock), "%s/owner", path);
		unlink(lock);
		assert_int_equal(rmdir(path), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			is_ours_alone_and_goes_with_all_that_is_in_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			is_left_alone_while_its_daemon_lives_and_swept_afterwards, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_is_not_known_to_be_ours_is_not_swept, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
