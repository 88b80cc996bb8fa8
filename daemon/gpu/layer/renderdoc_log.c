#include "gpu/layer/renderdoc_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS "/proc/self/fd"
#define NAME_BEGIN  "RenderDoc_"
#define NAME_END    ".log"

static bool is_log(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t len = name != NULL ? strlen(name) : 0;
	return len > strlen(NAME_END) && strncmp(name + 1, NAME_BEGIN, strlen(NAME_BEGIN)) == 0 &&
		   strcmp(name + len - strlen(NAME_END), NAME_END) == 0;
}

static bool take(struct renderdoc_log *log, int fd)
{
	struct stat status;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		return false;
	}
	log->fd = fd;
	log->device = status.st_dev;
	log->inode = status.st_ino;
	return true;
}

void renderdoc_log_find(struct renderdoc_log *log)
{
	DIR *folder = opendir(DESCRIPTORS);
	const struct dirent *entry;
	log->fd = -1;
	while (folder != NULL && log->fd < 0 && (entry = readdir(folder)) != NULL) {
		ssize_t len = readlinkat(dirfd(folder), entry->d_name, log->path, sizeof(log->path) - 1);
		log->path[len > 0 ? len : 0] = '\0';
		if (is_log(log->path)) {
			take(log, (int)strtol(entry->d_name, NULL, 10));
		}
	}
	if (folder != NULL) {
		closedir(folder);
	}
}

/* A number that is in use is never taken from who has it, also not from another thread that is just getting it. */
static bool take_place(struct renderdoc_log *log)
{
	int file = open(log->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	file = file >= 0 ? file : open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (file < 0 || file == log->fd) {
		return file >= 0;
	}
	int placed = fcntl(file, F_DUPFD_CLOEXEC, log->fd);
	close(file);
	if (placed >= 0 && placed != log->fd) {
		close(placed);
	}
	return placed == log->fd;
}

bool renderdoc_log_mend(struct renderdoc_log *log, struct fault *fault)
{
	struct stat status;
	if (log->fd < 0 || (fstat(log->fd, &status) == 0 && status.st_dev == log->device &&
						   status.st_ino == log->inode)) {
		return true;
	}
	if (take_place(log) && fstat(log->fd, &status) == 0) {
		log->device = status.st_dev;
		log->inode = status.st_ino;
		return true;
	}
	return fault_set(fault, "descriptor_closed",
		"the program has closed descriptor %d, RenderDoc's log, and opened another file in its "
		"place, into which RenderDoc writes now",
		log->fd);
}
