#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "support/entries.h"

struct fixture {
	char path[64];
	int fd;
};

static size_t open_descriptors(void)
{
	return entries_count("/proc/self/fd");
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	snprintf(fixture->path, sizeof(fixture->path), "/tmp/test-files-XXXXXX");
	assert_non_null(mkdtemp(fixture->path));
	fixture->fd = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fixture->fd >= 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	char command[128];
	close(fixture->fd);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->path);
	assert_int_equal(system(command), 0);
	free(fixture);
	return 0;
}

static void put(int folder_fd, const char *name, const char *text)
{
	int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void creates_files_for_their_owner_alone(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct stat status;
	int fd = files_create(fixture->fd, "a", &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	assert_int_equal(files_create(fixture->fd, "a", &err), -1);
	assert_string_equal(err.detail, "eexist");
}

static void does_not_create_through_a_link(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_int_equal(symlinkat("elsewhere", fixture->fd, "link"), 0);
	assert_int_equal(files_create(fixture->fd, "link", &err), -1);
	assert_int_equal(faccessat(fixture->fd, "elsewhere", F_OK, 0), -1);
}

static void refuses_names_that_leave_the_folder(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = {"", ".", "..", "../a", "a/b", "/tmp/a"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct error err = {0};
		assert_int_equal(files_create(fixture->fd, names[i], &err), -1);
		assert_int_equal(files_open(fixture->fd, names[i], &err), -1);
		assert_int_equal(files_make_folder(fixture->fd, names[i], &err), -1);
		assert_false(files_remove(fixture->fd, names[i], &err));
		assert_false(files_remove_tree(fixture->fd, names[i], &err));
		assert_false(files_rename(fixture->fd, "x", names[i], &err));
		assert_int_equal(err.code, ERROR_IO);
	}
}

static void opens_only_regular_files(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_int_equal(mkfifoat(fixture->fd, "fifo", 0600), 0);
	assert_int_equal(symlinkat("/etc/passwd", fixture->fd, "link"), 0);
	assert_int_equal(mkdirat(fixture->fd, "folder", 0700), 0);
	size_t before = open_descriptors();
	assert_int_equal(files_open(fixture->fd, "fifo", &err), -1);
	assert_int_equal(files_open(fixture->fd, "link", &err), -1);
	assert_int_equal(files_open(fixture->fd, "folder", &err), -1);
	assert_int_equal(open_descriptors(), before);
}

static void says_what_is_wrong_with_a_folder(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char path[128];
	assert_int_equal(files_open_folder("relative/path", false, &err), -1);
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_non_null(strstr(err.message, "relative/path"));

	snprintf(path, sizeof(path), "%s/missing", fixture->path);
	assert_int_equal(files_open_folder(path, false, &err), -1);
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_non_null(strstr(err.message, "is missing"));
	assert_non_null(strstr(err.hint, "mkdir -p"));

	put(fixture->fd, "file", "");
	snprintf(path, sizeof(path), "%s/file", fixture->path);
	assert_int_equal(files_open_folder(path, false, &err), -1);
	assert_non_null(strstr(err.message, "is not a folder"));

	assert_int_equal(symlinkat(fixture->path, fixture->fd, "link"), 0);
	snprintf(path, sizeof(path), "%s/link", fixture->path);
	assert_int_equal(files_open_folder(path, false, &err), -1);
	assert_non_null(strstr(err.message, "is a symbolic link"));
}

static void refuses_a_folder_of_another_user(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct stat status;
	const char *foreign = "/proc";
	if (geteuid() == 0) {
		assert_int_equal(fchownat(fixture->fd, "", 12345, 12345, AT_EMPTY_PATH), 0);
		foreign = fixture->path;
	}
	assert_int_equal(stat(foreign, &status), 0);
	assert_int_not_equal(status.st_uid, geteuid());
	assert_int_equal(files_open_folder(foreign, false, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_string_equal(err.detail, "not_ours");
	assert_non_null(strstr(err.message, foreign));
}

static void refuses_an_open_folder_where_a_private_one_is_needed(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_int_equal(chmod(fixture->path, 0750), 0);
	assert_int_equal(files_open_folder(fixture->path, true, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	int fd = files_open_folder(fixture->path, false, &err);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chmod(fixture->path, 0700), 0);
	fd = files_open_folder(fixture->path, true, &err);
	assert_true(fd >= 0);
	close(fd);
}

static void makes_all_folders_of_a_path(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct stat status;
	char path[128];
	snprintf(path, sizeof(path), "%s/a//b/c/", fixture->path);
	int fd = files_open_or_make_folder(path, &err);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fstatat(fixture->fd, "a/b/c", &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	fd = files_open_or_make_folder(path, &err);
	assert_true(fd >= 0);
	close(fd);
	put(fixture->fd, "file", "");
	snprintf(path, sizeof(path), "%s/file/below", fixture->path);
	assert_int_equal(files_open_or_make_folder(path, &err), -1);
	assert_non_null(strstr(err.message, "file"));
}

static void writes_through_partial_writes(void **state)
{
	(void)state;
	int ends[2];
	struct error err = {0};
	size_t written = 0;
	static char bytes[300000];
	memset(bytes, 'x', sizeof(bytes));
	/* A pipe holds 64 KiB: the writer must come back for the rest while a child reads. */
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char taken[1000];
		size_t total = 0;
		close(ends[1]);
		for (ssize_t count; (count = read(ends[0], taken, sizeof(taken))) > 0;) {
			total += (size_t)count;
		}
		_exit(total == sizeof(bytes) ? 0 : 1);
	}
	close(ends[0]);
	assert_true(files_write_all(ends[1], bytes, sizeof(bytes), &written, &err));
	assert_int_equal(written, sizeof(bytes));
	close(ends[1]);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	assert_int_equal(info.si_status, 0);
}

static void tells_how_much_fitted_on_a_full_disk(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct rlimit before, limit;
	size_t written = 0;
	char bytes[3000] = {0};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1000;
	int fd = files_create(fixture->fd, "a", &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(files_write_all(fd, bytes, sizeof(bytes), &written, &err));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_int_equal(written, 1000);
	close(fd);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_false(files_write_all(fd, bytes, sizeof(bytes), &written, &err));
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_int_equal(written, 0);
	close(fd);
}

static void replaces_a_file_and_leaves_nothing_beside_it(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	size_t len = 0;
	put(fixture->fd, "record.tmp", "left behind by a crash");
	put(fixture->fd, "record", "old");
	assert_true(files_replace(fixture->fd, "record", "new text", 8, &err));
	char *text = files_read(fixture->fd, "record", 100, &len, &err);
	assert_string_equal(text, "new text");
	assert_int_equal(len, 8);
	free(text);
	assert_int_equal(entries_count(fixture->path), 1);
}

static void puts_a_file_as_it_replaces_one(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	size_t len = 0;
	put(fixture->fd, "record", "old and longer");
	assert_true(files_put(fixture->fd, "record", "new", 3, &err));
	char *text = files_read(fixture->fd, "record", 100, &len, &err);
	assert_string_equal(text, "new");
	free(text);
	assert_int_equal(entries_count(fixture->path), 1);
}

static void keeps_the_old_file_when_it_cannot_be_replaced(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	struct rlimit before, limit;
	size_t len = 0, descriptors = open_descriptors();
	char bytes[3000] = {0};
	put(fixture->fd, "record", "old");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(files_replace(fixture->fd, "record", bytes, sizeof(bytes), &err));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(err.code, ERROR_DISK_FULL);
	char *text = files_read(fixture->fd, "record", 100, &len, &err);
	assert_string_equal(text, "old");
	free(text);
	assert_int_equal(entries_count(fixture->path), 1);
	assert_int_equal(open_descriptors(), descriptors);
}

static void reads_no_file_that_is_too_large(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	size_t len = 0;
	put(fixture->fd, "a", "12345");
	assert_null(files_read(fixture->fd, "a", 4, &len, &err));
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	char *text = files_read(fixture->fd, "a", 5, &len, &err);
	assert_string_equal(text, "12345");
	free(text);
}

static void removing_what_is_not_there_succeeds(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	assert_true(files_remove(fixture->fd, "nothing", &err));
	assert_true(files_remove_tree(fixture->fd, "nothing", &err));
}

static void removes_a_tree_but_nothing_that_its_links_lead_to(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	size_t descriptors = open_descriptors();
	assert_int_equal(mkdirat(fixture->fd, "kept", 0700), 0);
	put(fixture->fd, "kept/precious", "x");
	assert_int_equal(mkdirat(fixture->fd, "tree", 0700), 0);
	assert_int_equal(mkdirat(fixture->fd, "tree/below", 0700), 0);
	put(fixture->fd, "tree/below/file", "x");
	assert_int_equal(symlinkat("../kept", fixture->fd, "tree/link"), 0);
	assert_int_equal(symlinkat("../kept/precious", fixture->fd, "tree/below/link"), 0);
	assert_int_equal(mkfifoat(fixture->fd, "tree/fifo", 0600), 0);
	assert_true(files_remove_tree(fixture->fd, "tree", &err));
	assert_int_equal(faccessat(fixture->fd, "tree", F_OK, 0), -1);
	assert_int_equal(faccessat(fixture->fd, "kept/precious", F_OK, 0), 0);
	assert_int_equal(open_descriptors(), descriptors);
}

static void gives_up_on_a_tree_that_is_too_deep(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char path[256] = "deep";
	for (int i = 0; i < 50; i++) {
		assert_int_equal(mkdirat(fixture->fd, path, 0700), 0);
		strcat(path, "/d");
	}
	size_t descriptors = open_descriptors();
	assert_false(files_remove_tree(fixture->fd, "deep", &err));
	assert_non_null(strstr(err.message, "deep"));
	assert_int_equal(open_descriptors(), descriptors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(creates_files_for_their_owner_alone),
		TEST(does_not_create_through_a_link),
		TEST(refuses_names_that_leave_the_folder),
		TEST(opens_only_regular_files),
		TEST(says_what_is_wrong_with_a_folder),
		TEST(refuses_a_folder_of_another_user),
		TEST(refuses_an_open_folder_where_a_private_one_is_needed),
		TEST(makes_all_folders_of_a_path),
		TEST(writes_through_partial_writes),
		TEST(tells_how_much_fitted_on_a_full_disk),
		TEST(replaces_a_file_and_leaves_nothing_beside_it),
		TEST(puts_a_file_as_it_replaces_one),
		TEST(keeps_the_old_file_when_it_cannot_be_replaced),
		TEST(reads_no_file_that_is_too_large),
		TEST(removing_what_is_not_there_succeeds),
		TEST(removes_a_tree_but_nothing_that_its_links_lead_to),
		TEST(gives_up_on_a_tree_that_is_too_deep),
	};
	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
