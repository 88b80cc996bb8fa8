#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/output_files.h"
#include "support/process_stage.h"

static char folder[] = "/tmp/profd-test-files-XXXXXX";
static int folder_fd = -1;

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	if (mkdtemp(folder) == NULL) {
		return -1;
	}
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return stage_set_up(state);
}

static int remove_folder(void **state)
{
	char command[PATH_MAX];
	int status = stage_tear_down(state);
	close(folder_fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) == 0 ? status : -1;
}

static void launch(struct process_stage *stage, const char *script, bool leave, char what)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {
		.argv = argv, .stdio = PROCESS_STDIO_FILE, .leave = leave};
	processes_set_data_dir(stage->processes, folder_fd, folder);
	stage_run(stage, &stage->seen, &options, what);
}

static size_t folders(void)
{
	size_t count = 0;
	int fd = openat(folder_fd, OUTPUT_FILES_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	while (list != NULL && (entry = readdir(list)) != NULL) {
		count += entry->d_name[0] != '.' ? 1 : 0;
	}
	if (list != NULL) {
		closedir(list);
	}
	return count;
}

static void read_all(struct process_stage *stage, enum process_stream stream, uint64_t offset,
	const char *expected, bool has_ended)
{
	char bytes[100];
	struct process_piece piece;
	assert_true(process_read_output(
		stage->seen.process, stream, &offset, bytes, sizeof(bytes), &piece, &stage->err));
	assert_int_equal(piece.len, strlen(expected));
	assert_memory_equal(bytes, expected, piece.len);
	assert_int_equal(piece.offset, offset);
	assert_int_equal(piece.lost_before, 0);
	assert_int_equal(piece.end, offset + piece.len);
	assert_int_equal(piece.has_ended, has_ended);
}

static void check_file(const char *path, const char *expected)
{
	struct stat status;
	char bytes[100] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), strlen(expected));
	assert_string_equal(bytes, expected);
	close(fd);
}

static void keeps_both_streams_in_private_files_of_its_own(void **state)
{
	struct process_stage *stage = *state;
	char path[PATH_MAX], expected[PATH_MAX];
	mode_t mask = umask(0);
	launch(stage, "echo out; echo err >&2; readlink /proc/self/fd/0; exit 3", false, 'x');
	umask(mask);
	assert_string_equal(stage->seen.told, "rRx"); /* nothing came to us */
	assert_int_equal(stage->seen.exit.exit_code, 3);
	snprintf(expected, sizeof(expected), "%s/output/%llu-%d/stdout", folder,
		(unsigned long long)process_started_unix_us(stage->seen.process),
		(int)process_pid(stage->seen.process));
	assert_true(process_output_path(stage->seen.process, PROCESS_STDOUT, path));
	assert_string_equal(path, expected);
	check_file(path, "out\n/dev/null\n");
	read_all(stage, PROCESS_STDOUT, 0, "out\n/dev/null\n", true);
	read_all(stage, PROCESS_STDOUT, 14, "", true);
	struct stat status;
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_true(process_output_path(stage->seen.process, PROCESS_STDERR, path));
	check_file(path, "err\n");
	uint64_t beyond = 15;
	struct process_piece piece;
	assert_false(process_read_output(
		stage->seen.process, PROCESS_STDOUT, &beyond, path, 1, &piece, &stage->err));
	assert_string_equal(stage->err.detail, "out_of_range");
	assert_non_null(strstr(stage->err.message, "15"));
	assert_non_null(strstr(stage->err.message, "14"));
}

static void shows_what_a_running_one_has_written(void **state)
{
	struct process_stage *stage = *state;
	char path[PATH_MAX];
	launch(stage, "echo up; exec sleep 60", false, 'R');
	assert_true(process_output_path(stage->seen.process, PROCESS_STDOUT, path));
	struct stat status = {0};
	for (int i = 0; i < 1000 && status.st_size < 3; i++) {
		usleep(10000);
		assert_int_equal(stat(path, &status), 0);
	}
	read_all(stage, PROCESS_STDOUT, 1, "p\n", false);
	stage_stop(stage, SIGTERM, 5000);
}

static void leaves_nothing_of_what_could_not_run(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"/no/such/program", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_FILE};
	processes_set_data_dir(stage->processes, folder_fd, folder);
	stage_run(stage, &stage->seen, &options, 'f');
	assert_int_equal(folders(), 0);
}

static void follows_no_link_and_trusts_no_open_folder(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_FILE};
	processes_set_data_dir(stage->processes, folder_fd, folder);
	assert_int_equal(symlinkat("/tmp", folder_fd, OUTPUT_FILES_FOLDER), 0);
	assert_false(stage_launch(stage, &stage->seen, &options));
	assert_int_equal(unlinkat(folder_fd, OUTPUT_FILES_FOLDER, 0), 0);
	assert_int_equal(mkdirat(folder_fd, OUTPUT_FILES_FOLDER, 0700), 0);
	assert_int_equal(fchmodat(folder_fd, OUTPUT_FILES_FOLDER, 0770, 0), 0);
	assert_false(stage_launch(stage, &stage->seen, &options));
	assert_int_equal(stage->seen.err.code, ERROR_NOT_PERMITTED);
	/* The program itself may put something else in the place of its file. */
	assert_int_equal(fchmodat(folder_fd, OUTPUT_FILES_FOLDER, 0700, 0), 0);
	char script[PATH_MAX];
	snprintf(script, sizeof(script),
		"cd %s/output/*; rm stdout; ln -s /etc/passwd stdout; rm stderr; mkfifo stderr", folder);
	launch(stage, script, false, 'x');
	char bytes[8];
	struct process_piece piece;
	assert_false(process_read_output(
		stage->seen.process, PROCESS_STDOUT, NULL, bytes, 8, &piece, &stage->err));
	assert_false(process_read_output(
		stage->seen.process, PROCESS_STDERR, NULL, bytes, 8, &piece, &stage->err));
}

static void is_refused_without_a_data_folder(void **state)
{
	struct process_stage *stage = *state;
	const char *argv[] = {"true", NULL};
	const struct process_options options = {.argv = argv, .stdio = PROCESS_STDIO_FILE};
	assert_false(stage_launch(stage, &stage->seen, &options));
	assert_int_equal(stage->seen.err.code, ERROR_UNSUPPORTED);
}

/* A folder as a daemon left it so many days ago. */
static void make_left(const char *name, int days)
{
	char path[PATH_MAX];
	struct timespec times[2] = {
		{.tv_sec = time(NULL) - days * 86400}, {.tv_sec = time(NULL) - days * 86400}};
	snprintf(path, sizeof(path), "output/%s", name);
	assert_int_equal(mkdirat(folder_fd, path, 0700), 0);
	snprintf(path, sizeof(path), "output/%s/stdout", name);
	close(openat(folder_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(utimensat(folder_fd, path, times, 0), 0);
}

static bool is_there(const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "output/%s", name);
	return faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void are_cleaned_when_they_are_old_and_nobody_writes(void **state)
{
	(void)state;
	char mine[64];
	pid_t gone = fork();
	if (gone == 0) {
		_exit(0);
	}
	waitpid(gone, NULL, 0);
	output_files_clean(folder_fd); /* there is none */
	assert_int_equal(mkdirat(folder_fd, "output", 0700), 0);
	char old[64], recent[64], written[64];
	long long day_us = 86400000000, now_us = (long long)time(NULL) * 1000000;
	snprintf(mine, sizeof(mine), "%lld-%d", now_us - 20 * day_us, (int)getpid());
	snprintf(old, sizeof(old), "%lld-%d", now_us - 15 * day_us, (int)gone);
	snprintf(recent, sizeof(recent), "%lld-%d", now_us - 13 * day_us, (int)gone);
	snprintf(written, sizeof(written), "%lld-%d", now_us - 30 * day_us, (int)gone);
	make_left(mine, 20);
	make_left(old, 15);
	make_left(recent, 13);
	make_left(written, 1);
	make_left("starting-0123456789abcdef", 0);
	make_left("somebody's own", 100);
	output_files_clean(folder_fd);
	assert_true(is_there(mine));
	assert_false(is_there(old));
	assert_true(is_there(recent));
	assert_true(is_there(written));
	assert_false(is_there("starting-0123456789abcdef"));
	assert_true(is_there("somebody's own"));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(keeps_both_streams_in_private_files_of_its_own),
		CASE(shows_what_a_running_one_has_written),
		CASE(leaves_nothing_of_what_could_not_run),
		CASE(follows_no_link_and_trusts_no_open_folder),
		CASE(is_refused_without_a_data_folder),
		CASE(are_cleaned_when_they_are_old_and_nobody_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
