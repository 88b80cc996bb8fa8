#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/target.h"

#define NOBODY 65534

/* A file of one page, mapped as code into this process. */
struct mapped {
	char path[128];
	void *area;
	size_t bytes;
	struct target_mapping found;
	char found_path[256];
	bool is_found;
};

static void map_file(struct mapped *mapped, const char *path)
{
	mapped->bytes = (size_t)sysconf(_SC_PAGESIZE);
	snprintf(mapped->path, sizeof(mapped->path), "%s", path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "here", 4), 4);
	assert_int_equal(ftruncate(fd, (off_t)(2 * mapped->bytes)), 0);
	mapped->area =
		mmap(NULL, mapped->bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)mapped->bytes);
	assert_ptr_not_equal(mapped->area, MAP_FAILED);
	close(fd);
}

static bool find(void *context, const struct target_mapping *mapping)
{
	struct mapped *mapped = context;
	if (mapping->start != (uintptr_t)mapped->area) {
		return true;
	}
	mapped->found = *mapping;
	snprintf(mapped->found_path, sizeof(mapped->found_path), "%s", mapping->path);
	mapped->found.path = mapped->found_path;
	mapped->is_found = true;
	return false;
}

static int setup(void **state)
{
	char folder[] = "/tmp/test_target-XXXXXX", path[64];
	struct mapped *mapped = calloc(1, sizeof(*mapped));
	assert_non_null(mapped);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a file\nof code", folder);
	map_file(mapped, path);
	assert_true(target_mappings(getpid(), find, mapped, NULL));
	assert_true(mapped->is_found);
	*state = mapped;
	return 0;
}

static int teardown(void **state)
{
	struct mapped *mapped = *state;
	munmap(mapped->area, mapped->bytes);
	unlink(mapped->path);
	*strrchr(mapped->path, '/') = '\0';
	rmdir(mapped->path);
	free(mapped);
	return 0;
}

static void reads_a_mapping_as_it_was_made(void **state)
{
	struct mapped *mapped = *state;
	struct stat status;
	assert_int_equal(stat(mapped->path, &status), 0);
	assert_string_equal(mapped->found.path, mapped->path);
	assert_int_equal(mapped->found.length, mapped->bytes);
	assert_int_equal(mapped->found.file_offset, mapped->bytes);
	assert_int_equal(mapped->found.protection, PROT_READ | PROT_EXEC);
	assert_int_equal(mapped->found.inode, status.st_ino);
	assert_int_equal(
		makedev(mapped->found.device_major, mapped->found.device_minor), status.st_dev);
}

static void cuts_deleted_off_a_path(void **state)
{
	struct mapped *mapped = *state;
	unlink(mapped->path);
	assert_true(target_mappings(getpid(), find, mapped, NULL));
	assert_string_equal(mapped->found.path, mapped->path);
}

static void expect_here(int fd)
{
	char text[5] = "";
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, text, 4, 0), 4);
	assert_string_equal(text, "here");
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void opens_the_file_of_a_mapping(void **state)
{
	struct mapped *mapped = *state;
	expect_here(target_open_mapped_file(getpid(), &mapped->found, NULL));
}

static void opens_the_file_when_the_process_has_ended(void **state)
{
	struct mapped *mapped = *state;
	pid_t gone = fork();
	if (gone == 0) {
		_exit(0);
	}
	waitpid(gone, NULL, 0);
	expect_here(target_open_mapped_file(gone, &mapped->found, NULL));
}

/* map_files needs CAP_CHECKPOINT_RESTORE: an ordinary user is told that the file is gone. */
static void tells_that_a_file_was_deleted_or_opens_it_all_the_same(void **state)
{
	struct mapped *mapped = *state;
	struct error err = {0};
	unlink(mapped->path);
	int fd = target_open_mapped_file(getpid(), &mapped->found, &err);
	if (geteuid() == 0) {
		expect_here(fd);
	} else {
		assert_int_equal(fd, -1);
		assert_string_equal(err.detail, "deleted");
	}
}

static void never_opens_another_file_of_that_name(void **state)
{
	struct mapped *mapped = *state;
	struct error err = {0};
	char other[160];
	snprintf(other, sizeof(other), "%s.new", mapped->path);
	int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "wolf", 4), 4);
	close(fd);
	assert_int_equal(rename(other, mapped->path), 0);
	mapped->found.length = 1; /* no such range in map_files */
	assert_int_equal(target_open_mapped_file(getpid(), &mapped->found, &err), -1);
	assert_string_equal(err.detail, "replaced");
}

/* Opening a FIFO would wait for its writer for ever. */
static void never_opens_what_is_no_regular_file(void **state)
{
	struct mapped *mapped = *state;
	struct stat status;
	struct error err = {0};
	unlink(mapped->path);
	assert_int_equal(mkfifo(mapped->path, 0600), 0);
	assert_int_equal(stat(mapped->path, &status), 0);
	mapped->found.inode = status.st_ino;
	mapped->found.length = 1;
	alarm(10);
	assert_int_equal(target_open_mapped_file(getpid(), &mapped->found, &err), -1);
	alarm(0);
	assert_string_equal(err.detail, "replaced");
	mapped->found.path = "[vdso]";
	assert_int_equal(target_open_mapped_file(getpid(), &mapped->found, &err), -1);
	assert_string_equal(err.detail, "no_file");
}

/* A link that a container's owner could lay must not lead out of the container. */
static void stays_below_the_root_of_the_process(void **state)
{
	struct mapped *mapped = *state;
	if (geteuid() != 0) {
		print_message("skipped: chroot needs root\n");
		skip();
	}
	char folder[160], link[256], byte;
	int ready[2], release[2];
	snprintf(folder, sizeof(folder), "%s.root", mapped->path);
	snprintf(link, sizeof(link), "%s/passwd", folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	int fd = open(link, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "here", 4), 4);
	struct stat inside;
	assert_int_equal(fstat(fd, &inside), 0);
	close(fd);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(release), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(release[1]);
		_exit(
			chroot(folder) != 0 || write(ready[1], "r", 1) != 1 || read(release[0], &byte, 1) < 0);
	}
	close(release[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct target_mapping mapping = {
		.device_major = major(inside.st_dev),
		.device_minor = minor(inside.st_dev),
		.inode = inside.st_ino,
		.path = "/passwd",
	};
	expect_here(target_open_mapped_file(child, &mapping, NULL));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	struct stat outside;
	assert_int_equal(stat("/etc/passwd", &outside), 0);
	mapping.device_major = major(outside.st_dev);
	mapping.device_minor = minor(outside.st_dev);
	mapping.inode = outside.st_ino;
	assert_int_equal(target_open_mapped_file(child, &mapping, NULL), -1);
	close(release[1]);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
	unlink(link);
	rmdir(folder);
}

struct waiter {
	int stop[2], ready[2];
	pid_t tid;
};

static void *wait_here(void *context)
{
	struct waiter *waiter = context;
	char byte = 0;
	prctl(PR_SET_NAME, "a ) S 1 name");
	waiter->tid = (pid_t)syscall(SYS_gettid);
	bool done = write(waiter->ready[1], &byte, 1) == 1 && read(waiter->stop[0], &byte, 1) == 0;
	return done ? context : NULL;
}

static void lists_threads_and_their_names(void **state)
{
	(void)state;
	struct waiter waiter = {0};
	char byte, name[16] = "";
	pid_t *tids;
	size_t before, count;
	pthread_t thread;
	bool is_there = false;
	assert_int_equal(pipe(waiter.stop), 0);
	assert_int_equal(pipe(waiter.ready), 0);
	assert_true(target_threads(getpid(), &tids, &before, NULL));
	free(tids);
	assert_int_equal(pthread_create(&thread, NULL, wait_here, &waiter), 0);
	assert_int_equal(read(waiter.ready[0], &byte, 1), 1);
	assert_true(target_threads(getpid(), &tids, &count, NULL));
	assert_int_equal(count, before + 1);
	for (size_t i = 0; i < count; i++) {
		is_there |= tids[i] == waiter.tid;
	}
	free(tids);
	assert_true(is_there);
	assert_true(target_thread_name(getpid(), waiter.tid, name, NULL));
	assert_string_equal(name, "a ) S 1 name");
	close(waiter.stop[1]);
	pthread_join(thread, NULL);
	close(waiter.stop[0]);
	close(waiter.ready[0]);
	close(waiter.ready[1]);
}

static void finds_the_parent_behind_any_name(void **state)
{
	(void)state;
	int pipes[2];
	char byte;
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, ") Z 1 (");
		_exit(write(pipes[1], "r", 1) != 1 || pause() != 0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(target_parent(child), getpid());
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(target_parent(child), 0);
	close(pipes[0]);
	close(pipes[1]);
}

static bool never(void *context, const struct target_mapping *mapping)
{
	(void)context;
	(void)mapping;
	return false;
}

static void says_that_a_process_is_not_there(void **state)
{
	(void)state;
	pid_t *tids;
	size_t count;
	char name[16];
	struct error errors[4] = {0};
	pid_t gone = fork();
	if (gone == 0) {
		_exit(0);
	}
	waitpid(gone, NULL, 0);
	assert_false(target_mappings(gone, never, NULL, &errors[0]));
	assert_false(target_threads(gone, &tids, &count, &errors[1]));
	assert_false(target_thread_name(gone, gone, name, &errors[2]));
	assert_false(target_is_ours(gone, &errors[3]));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(errors[i].code, ERROR_PROCESS_NOT_FOUND);
	}
	assert_false(target_is_gate(gone));
}

static void knows_whose_a_process_is(void **state)
{
	(void)state;
	int status;
	struct error err = {0};
	assert_true(target_is_ours(getpid(), &err));
	assert_false(target_is_gate(getpid()));
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && setuid(NOBODY) != 0) {
			_exit(9);
		}
		_exit(target_is_ours(getpid(), &err) && !target_is_ours(1, &err) &&
					  err.code == ERROR_NOT_PERMITTED
				  ? 0
				  : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In a child, as nobody: programs of several rights, by path and through PATH. 0: all as expected, otherwise the line. */
static int judge_programs(const char *folder)
{
	setenv("PATH", folder, 1);
	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0) {
		return __LINE__;
	}
	if (!target_program_is_hidden("suid", "/") || !target_program_is_hidden("./sgid", folder) ||
		!target_program_is_hidden("unreadable", "/")) {
		return __LINE__;
	}
	if (target_program_is_hidden("plain", "/") || target_program_is_hidden("./plain", folder) ||
		target_program_is_hidden("./suid", "/") || target_program_is_hidden("none", "/") ||
		target_program_is_hidden("", "/")) {
		return __LINE__;
	}
	return 0;
}

static void knows_programs_that_will_be_hidden(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		mode_t mode;
	} files[] = {{"suid", 04755}, {"sgid", 02755}, {"unreadable", 0711}, {"plain", 0755}};
	char folder[] = "/tmp/profd-target-XXXXXX", path[64];
	int status = -1;
	if (geteuid() != 0) {
		print_message("needs root, to make programs of another user\n");
		skip();
	}
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
		fclose(fopen(path, "w"));
		assert_int_equal(chmod(path, files[i].mode), 0);
		assert_false(target_program_is_hidden(path, "/")); /* root's own, and what root may read */
		if ((files[i].mode & (S_ISUID | S_ISGID)) != 0) {
			assert_int_equal(chown(path, NOBODY, NOBODY), 0);
			assert_int_equal(chmod(path, files[i].mode), 0);
			assert_true(target_program_is_hidden(path, "/"));
			assert_int_equal(chown(path, 0, 0), 0);
			assert_int_equal(chmod(path, files[i].mode), 0);
		}
	}
	pid_t child = fork();
	if (child == 0) {
		_exit(judge_programs(folder) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
		unlink(path);
	}
	rmdir(folder);
	assert_int_equal(status, 0);
}

static void *stay(void *unused)
{
	pause();
	return unused;
}

/* A child whose first thread has ended, and another lives. */
static pid_t fork_without_first_thread(void)
{
	pthread_t thread;
	char path[64], text[512] = "";
	pid_t child = fork();
	if (child == 0) {
		pthread_create(&thread, NULL, stay, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
	while (strstr(text, ") Z") == NULL) {
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof(text), file));
		fclose(file);
	}
	return child;
}

static void asks_a_living_thread_of_a_process_whose_first_has_ended(void **state)
{
	struct mapped *mapped = *state;
	char ours[4096], theirs[4096], here[PATH_MAX], there[PATH_MAX], word[8] = "";
	size_t our_len = 0, their_len = 0;
	pid_t child = fork_without_first_thread();
	assert_true(target_arguments(getpid(), ours, sizeof(ours), &our_len, NULL));
	assert_true(target_arguments(child, theirs, sizeof(theirs), &their_len, NULL));
	assert_true(our_len > 0);
	assert_int_equal(their_len, our_len);
	assert_memory_equal(theirs, ours, our_len);
	assert_true(target_environment(child, theirs, sizeof(theirs), &their_len, NULL));
	assert_true(their_len > 0);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_true(target_cwd(child, there, NULL));
	assert_string_equal(there, here);
	assert_true(target_read_memory(child, (uintptr_t) "memory", word, sizeof("memory")));
	assert_string_equal(word, "memory");
	mapped->is_found = false;
	assert_true(target_mappings(child, find, mapped, NULL));
	assert_true(mapped->is_found);
	int fd = target_open_mapped_file(child, &mapped->found, NULL);
	assert_true(fd >= 0);
	close(fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(reads_a_mapping_as_it_was_made),
		CASE(cuts_deleted_off_a_path),
		CASE(opens_the_file_of_a_mapping),
		CASE(opens_the_file_when_the_process_has_ended),
		CASE(tells_that_a_file_was_deleted_or_opens_it_all_the_same),
		CASE(never_opens_another_file_of_that_name),
		CASE(never_opens_what_is_no_regular_file),
		CASE(stays_below_the_root_of_the_process),
		cmocka_unit_test(lists_threads_and_their_names),
		cmocka_unit_test(finds_the_parent_behind_any_name),
		cmocka_unit_test(says_that_a_process_is_not_there),
		CASE(asks_a_living_thread_of_a_process_whose_first_has_ended),
		cmocka_unit_test(knows_whose_a_process_is),
		cmocka_unit_test(knows_programs_that_will_be_hidden),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
