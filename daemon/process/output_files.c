#include "process/output_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "protocol/clock.h"
#include "protocol/limits.h"

#define STARTING_PREFIX "starting-"

static int open_folder(int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder of all; -1: err. One that is there must be ours, and closed to others. */
static int open_all(int data_fd, struct error *err)
{
	int fd = open_folder(data_fd, OUTPUT_FILES_FOLDER);
	if (fd < 0 && errno == ENOENT) {
		return files_make_folder(data_fd, OUTPUT_FILES_FOLDER, err);
	}
	struct stat status;
	if (fd < 0 || fstat(fd, &status) != 0) {
		error_errno(err, "the folder " OUTPUT_FILES_FOLDER " of the data folder");
		goto fail;
	}
	if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
		error_set(err, ERROR_NOT_PERMITTED,
			"the folder " OUTPUT_FILES_FOLDER " of the data folder has mode %o and user %u",
			(unsigned)status.st_mode & 07777, (unsigned)status.st_uid);
		error_hint(err, "make it yours alone: chown and chmod 700");
		goto fail;
	}
	return fd;

fail:
	if (fd >= 0) {
		close(fd);
	}
	return -1;
}

static int create_file(int folder_fd, const char *name, struct error *err)
{
	int fd = files_create(folder_fd, name, err);
	/* Whoever else has it open, also after a truncation: what is written goes to the end. */
	if (fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) != 0) {
		error_errno(err, "the file %s", name);
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool create_files(int folder_fd, int fds[2], struct error *err)
{
	fds[0] = create_file(folder_fd, OUTPUT_FILES_OUT, err);
	fds[1] = fds[0] < 0 ? -1 : create_file(folder_fd, OUTPUT_FILES_ERR, err);
	if (fds[1] >= 0) {
		return true;
	}
	if (fds[0] >= 0) {
		close(fds[0]);
	}
	fds[0] = fds[1] = -1;
	return false;
}

bool output_files_create(
	int data_fd, char name[OUTPUT_FILES_NAME_BYTES], int fds[2], struct error *err)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		return error_errno(err, "getrandom");
	}
	int all = open_all(data_fd, err);
	if (all < 0) {
		return false;
	}
	snprintf(name, OUTPUT_FILES_NAME_BYTES, STARTING_PREFIX "%016" PRIx64, random);
	int folder = files_make_folder(all, name, err);
	bool created = folder >= 0 && create_files(folder, fds, err);
	if (folder >= 0) {
		close(folder);
	}
	if (folder >= 0 && !created) {
		files_remove_tree(all, name, NULL);
	}
	if (!created) {
		name[0] = '\0';
	}
	close(all);
	return created;
}

bool output_files_rename(int data_fd, char name[OUTPUT_FILES_NAME_BYTES], uint64_t started_unix_us,
	pid_t pid, struct error *err)
{
	char final[OUTPUT_FILES_NAME_BYTES];
	snprintf(final, sizeof(final), "%" PRIu64 "-%d", started_unix_us, (int)pid);
	int all = open_all(data_fd, err);
	if (all < 0) {
		return false;
	}
	bool renamed = files_rename(all, name, final, err);
	close(all);
	if (renamed) {
		memcpy(name, final, sizeof(final));
	}
	return renamed;
}

int output_files_open(int data_fd, const char *name, const char *file, struct error *err)
{
	int fd = -1;
	int all = open_folder(data_fd, OUTPUT_FILES_FOLDER);
	int folder = all >= 0 ? open_folder(all, name) : -1;
	if (folder < 0) {
		error_errno(err, "the folder " OUTPUT_FILES_FOLDER "/%s of the data folder", name);
	} else {
		fd = files_open(folder, file, err);
		close(folder);
	}
	if (all >= 0) {
		close(all);
	}
	return fd;
}

void output_files_remove(int data_fd, const char *name)
{
	int all = open_folder(data_fd, OUTPUT_FILES_FOLDER);
	if (all >= 0) {
		files_remove_tree(all, name, NULL);
		close(all);
	}
}

static uint64_t changed_unix_us(int folder_fd, const char *file)
{
	struct stat status;
	if (fstatat(folder_fd, file, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		return 0;
	}
	return (uint64_t)status.st_mtim.tv_sec * 1000000 + (uint64_t)status.st_mtim.tv_nsec / 1000;
}

/* When something was written last, at the earliest its start. */
static uint64_t last_unix_us(int all, const char *name, uint64_t started_unix_us)
{
	uint64_t last = started_unix_us;
	int folder = open_folder(all, name);
	if (folder < 0) {
		return last;
	}
	const char *const names[] = {OUTPUT_FILES_OUT, OUTPUT_FILES_ERR};
	for (size_t i = 0; i < 2; i++) {
		uint64_t changed = changed_unix_us(folder, names[i]);
		last = changed > last ? changed : last;
	}
	close(folder);
	return last;
}

static bool is_left_over(int all, const char *name)
{
	uint64_t started_unix_us;
	int pid = 0, used = 0;
	if (strncmp(name, STARTING_PREFIX, strlen(STARTING_PREFIX)) == 0) {
		return true;
	}
	if (sscanf(name, "%" SCNu64 "-%d%n", &started_unix_us, &pid, &used) != 2 || pid <= 0 ||
		name[used] != '\0') {
		return false; /* not ours */
	}
	bool lives = kill(pid, 0) == 0 || errno == EPERM;
	uint64_t last = last_unix_us(all, name, started_unix_us);
	return !lives && last + UINT64_C(1000) * LIMIT_OUTPUT_FILES_MS < clock_unix_us();
}

void output_files_clean(int data_fd)
{
	int all = open_folder(data_fd, OUTPUT_FILES_FOLDER);
	int listed = all >= 0 ? dup(all) : -1;
	DIR *folder = listed >= 0 ? fdopendir(listed) : NULL;
	const struct dirent *entry;
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		if (is_left_over(all, entry->d_name)) {
			files_remove_tree(all, entry->d_name, NULL);
		}
	}
	if (folder != NULL) {
		closedir(folder);
	} else if (listed >= 0) {
		close(listed);
	}
	if (all >= 0) {
		close(all);
	}
}
