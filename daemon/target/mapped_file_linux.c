#include "target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "target/speaker.h"

/*
 * Is it the file that was mapped? btrfs and overlayfs show another device number to stat than in mappings; there
 * the inode decides alone.
 */
static bool is_same_file(int fd, const struct stat *status, const struct target_mapping *mapping)
{
	if (status->st_ino != mapping->inode) {
		return false;
	}
	if (status->st_dev == makedev(mapping->device_major, mapping->device_minor)) {
		return true;
	}
	struct statfs system;
	return fstatfs(fd, &system) == 0 &&
		   (system.f_type == BTRFS_SUPER_MAGIC || system.f_type == OVERLAYFS_SUPER_MAGIC);
}

/* Opens for reading what an O_PATH descriptor names, once it is known to be the regular file that was mapped: opening a
 * FIFO could block, and opening a device could do anything. Closes place. */
static int open_verified(int place, const struct target_mapping *mapping, struct error *err)
{
	struct stat status;
	char name[PROC_PATH_BYTES];
	int fd = -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
	if (fstat(place, &status) != 0) {
		error_errno(err, "%s", mapping->path);
	} else if (!S_ISREG(status.st_mode) || !is_same_file(place, &status, mapping)) {
		error_set(err, ERROR_IO, "%s is not the file that was mapped", mapping->path);
		error_detail(err, "replaced");
	} else {
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0) {
			error_errno(err, "%s", mapping->path);
		}
	}
	close(place);
	return fd;
}

/* The place of a path below a root. A link in it must not lead out. */
static int open_below(const char *root, const char *path)
{
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) {
		return -1;
	}
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	int failure = errno;
	close(root_fd);
	errno = failure;
	return fd;
}

static int open_in_root(const char *root, const struct target_mapping *mapping, struct error *err)
{
	int place = open_below(root, mapping->path);
	if (place >= 0) {
		return open_verified(place, mapping, err);
	}
	if (errno == ENOENT || errno == ENOTDIR) {
		error_set(err, ERROR_IO, "%s is not there any more", mapping->path);
		error_detail(err, "deleted");
	} else {
		error_errno(err, "%s", mapping->path);
	}
	return -1;
}

static int open_link(const char *name, const struct target_mapping *mapping)
{
	int place = open(name, O_PATH | O_CLOEXEC);
	return place < 0 ? -1 : open_verified(place, mapping, NULL);
}

/* The kernel's own links, which lead to a deleted file too. Those of all mappings are for privileged eyes (proc(5)), that
 * of the program is not. */
static int open_kept(pid_t pid, const struct target_mapping *mapping)
{
	char name[PROC_PATH_BYTES];
	pid = target_speaker(pid);
	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		mapping->start, mapping->start + mapping->length);
	int fd = open_link(name, mapping);
	if (fd < 0) {
		snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
		fd = open_link(name, mapping);
	}
	return fd;
}

int target_open_mapped_file(pid_t pid, const struct target_mapping *mapping, struct error *err)
{
	if (mapping->path[0] != '/') {
		error_set(err, ERROR_IO, "\"%s\" is not a file", mapping->path);
		error_detail(err, "no_file");
		return -1;
	}
	char root[PROC_PATH_BYTES];
	struct error first = {0};
	snprintf(root, sizeof(root), "/proc/%d/root", (int)target_speaker(pid));
	int fd = open_in_root(root, mapping, &first);
	/* A process that has just ended, or hides, has no root to be seen: the same file may be in ours. */
	if (fd < 0 && first.code != ERROR_LIMIT_EXCEEDED) {
		fd = open_in_root("/", mapping, NULL);
	}
	if (fd < 0 && first.code != ERROR_LIMIT_EXCEEDED) {
		fd = open_kept(pid, mapping);
	}
	if (fd < 0 && err) {
		*err = first;
	}
	return fd;
}
