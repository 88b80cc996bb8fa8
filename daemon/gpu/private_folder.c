#include "gpu/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define PREFIX      "profd-gpu-"
#define RANDOM      "XXXXXX" /* mkdtemp(3) */
#define OTHER_PLACE "/tmp"
#define LOCK_NAME   "owner"
#define NEW_NAME    "owner.new" /* until it is locked: without its lock a folder is anybody's */

/* NULL: it is not ours alone, or long, or cannot stand in a list of folders. */
static const char *runtime_place(void)
{
	struct stat status;
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool is_ours = runtime != NULL && runtime[0] == '/' && strchr(runtime, ':') == NULL &&
				   strlen(runtime) < PRIVATE_FOLDER_BYTES / 2 && stat(runtime, &status) == 0 &&
				   status.st_uid == geteuid() && (status.st_mode & 077) == 0;
	return is_ours ? runtime : NULL;
}

/* -1: err. */
static int lock(const char *path, struct error *err)
{
	int folder = files_open_folder(path, true, err);
	int fd = folder >= 0 ? openat(folder, NEW_NAME,
							   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
						 : -1;
	bool ok = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
			  renameat(folder, NEW_NAME, folder, LOCK_NAME) == 0;
	if (folder >= 0 && !ok) {
		error_errno(err, "lock the folder %s", path);
	}
	if (fd >= 0 && !ok) {
		close(fd);
	}
	if (folder >= 0) {
		close(folder);
	}
	return ok ? fd : -1;
}

int private_folder_make(char path[PRIVATE_FOLDER_BYTES], struct error *err)
{
	const char *runtime = runtime_place();
	snprintf(
		path, PRIVATE_FOLDER_BYTES, "%s/" PREFIX RANDOM, runtime != NULL ? runtime : OTHER_PLACE);
	if (mkdtemp(path) == NULL) {
		error_errno(err, "make the folder %s", path);
		path[0] = '\0';
		return -1;
	}
	int fd = lock(path, err);
	if (fd < 0) {
		private_folder_remove(path);
		path[0] = '\0';
	}
	return fd;
}

void private_folder_remove(const char *path)
{
	struct error err = {0};
	const char *slash = strrchr(path, '/');
	char parent[PRIVATE_FOLDER_BYTES];
	if (slash == NULL) {
		return;
	}
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	int fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		files_remove_tree(fd, slash + 1, &err);
		close(fd);
	}
}

/* Ours alone, and with a lock that nobody holds. */
static bool is_left(int place_fd, const char *name)
{
	struct stat status;
	int folder = openat(place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool is_ours = folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
				   (status.st_mode & 077) == 0;
	int fd = is_ours ? openat(folder, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (fd >= 0) {
		close(fd);
	}
	if (folder >= 0) {
		close(folder);
	}
	return is_free;
}

static bool has_our_name(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
		   strlen(name) == strlen(PREFIX) + strlen(RANDOM);
}

static size_t sweep(const char *place)
{
	size_t removed = 0;
	DIR *folder = opendir(place);
	struct dirent *entry = NULL;
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		struct error err = {0};
		if (has_our_name(entry->d_name) && is_left(dirfd(folder), entry->d_name)) {
			removed += files_remove_tree(dirfd(folder), entry->d_name, &err);
		}
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return removed;
}

size_t private_folder_sweep(void)
{
	const char *runtime = runtime_place();
	return (runtime != NULL ? sweep(runtime) : 0) + sweep(OTHER_PLACE);
}
