#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <sys/stat.h>

#include "profile/analysis.h"
#include "support/planted_attempts.h"

static int read_passwd(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(open("/etc/passwd", O_RDONLY));
}

static int open_path_only(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(open("/", O_PATH | O_DIRECTORY));
}

static int create_in_tmp(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(open("/tmp", O_TMPFILE | O_RDWR, 0600));
}

static int create_in_captures(const struct planted_aims *aims)
{
	return planted_had(open(planted_path(aims, "planted"), O_CREAT | O_WRONLY, 0600));
}

static int make_folder(const struct planted_aims *aims)
{
	return planted_outcome(mkdir(planted_path(aims, "planted-folder"), 0700));
}

static int make_link(const struct planted_aims *aims)
{
	return planted_outcome(symlink("/etc/passwd", planted_path(aims, "planted-link")));
}

static int rename_file(const struct planted_aims *aims)
{
	char from[4096];

	snprintf(from, sizeof(from), "%s", planted_path(aims, "planted-here"));
	return planted_outcome(rename(from, planted_path(aims, "planted-moved")));
}

static int unlink_file(const struct planted_aims *aims)
{
	return planted_outcome(unlink(planted_path(aims, "planted-there")));
}

static int truncate_file(const struct planted_aims *aims)
{
	return planted_outcome(truncate(planted_path(aims, "planted-long"), 0));
}

static int open_own_memory(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(open("/proc/self/mem", O_RDWR));
}

static int open_daemon_memory(const struct planted_aims *aims)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)aims->daemon);
	return planted_had(open(path, O_RDONLY));
}

static int open_dev_null(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(open("/dev/null", O_RDWR));
}

static int list_folder(const struct planted_aims *aims)
{
	(void)aims;
	DIR *folder = opendir("/");

	if (folder == NULL) {
		return errno;
	}
	closedir(folder);
	return 0;
}

/* By its link, with a right that it was not given. */
static int reopen_image(const struct planted_aims *aims)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", aims->image);
	return planted_had(open(path, O_RDWR));
}

static int stat_path(const struct planted_aims *aims)
{
	struct stat status;

	(void)aims;
	return planted_outcome(stat("/etc/passwd", &status));
}

static int statx_path(const struct planted_aims *aims)
{
	struct statx status;

	(void)aims;
	return planted_outcome(statx(AT_FDCWD, "/etc/passwd", 0, STATX_SIZE, &status));
}

static int access_path(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(access("/etc/passwd", R_OK));
}

static int read_link(const struct planted_aims *aims)
{
	char path[256];

	(void)aims;
	return planted_outcome(readlink("/proc/self/exe", path, sizeof(path)));
}

static int change_folder(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(chdir("/"));
}

static int change_root(const struct planted_aims *aims)
{
	(void)aims;
	return planted_outcome(chroot("/"));
}

static int chmod_path(const struct planted_aims *aims)
{
	return planted_outcome(chmod(planted_path(aims, "planted-long"), 0600));
}

/* To what they are: it may be a file of the system. */
static int chmod_image(const struct planted_aims *aims)
{
	struct stat status;

	return fstat(aims->image, &status) != 0
			   ? errno
			   : planted_outcome(fchmod(aims->image, status.st_mode & 07777));
}

static int touch_image(const struct planted_aims *aims)
{
	const struct timespec same[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

	return planted_outcome(futimens(aims->image, same));
}

static int write_image(const struct planted_aims *aims)
{
	return planted_outcome(write(aims->image, "x", 1));
}

static int read_foreign(const struct planted_aims *aims)
{
	char byte;

	return planted_outcome(pread(aims->foreign, &byte, 1, 0));
}

static int duplicate(const struct planted_aims *aims)
{
	(void)aims;
	return planted_had(dup(ANALYSIS_FD));
}

const struct planted_attempt planted_file_attempts[] = {
	PLANTED_ATTEMPT(read_passwd),
	PLANTED_ATTEMPT(open_path_only),
	PLANTED_ATTEMPT(create_in_tmp),
	PLANTED_ATTEMPT(create_in_captures),
	PLANTED_ATTEMPT(make_folder),
	PLANTED_ATTEMPT(make_link),
	PLANTED_ATTEMPT(rename_file),
	PLANTED_ATTEMPT(unlink_file),
	PLANTED_ATTEMPT(truncate_file),
	PLANTED_ATTEMPT(open_own_memory),
	PLANTED_ATTEMPT(open_daemon_memory),
	PLANTED_ATTEMPT(open_dev_null),
	PLANTED_ATTEMPT(list_folder),
	PLANTED_ATTEMPT(reopen_image),
	PLANTED_ATTEMPT(stat_path),
	PLANTED_ATTEMPT(statx_path),
	PLANTED_ATTEMPT(access_path),
	PLANTED_ATTEMPT(read_link),
	PLANTED_ATTEMPT(change_folder),
	PLANTED_ATTEMPT(change_root),
	PLANTED_ATTEMPT(chmod_path),
	PLANTED_ATTEMPT(chmod_image),
	PLANTED_ATTEMPT(touch_image),
	PLANTED_ATTEMPT(write_image),
	PLANTED_ATTEMPT(read_foreign),
	PLANTED_ATTEMPT(duplicate),
	{NULL, NULL},
};
