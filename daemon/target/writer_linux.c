#include "target/writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/speaker.h"

#define DELETED " (deleted)" /* proc_pid_exe(5) */

bool writer_runs(pid_t pid, const char *path)
{
	char link[PROC_PATH_BYTES], found[PATH_MAX + sizeof(DELETED)];
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)target_speaker(pid));
	ssize_t len = readlink(link, found, sizeof(found) - 1);
	if (len <= 0) {
		return false;
	}
	found[len] = '\0';
	size_t path_len = strlen(path);
	return strncmp(found, path, path_len) == 0 &&
		   (found[path_len] == '\0' || strcmp(found + path_len, DELETED) == 0);
}

/* The link's own mode says how the descriptor was opened. */
static bool is_it(int folder_fd, const char *name, dev_t device, ino_t inode)
{
	struct stat link, file;
	return fstatat(folder_fd, name, &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode) &&
		   (link.st_mode & S_IWUSR) != 0 && fstatat(folder_fd, name, &file, 0) == 0 &&
		   file.st_dev == device && file.st_ino == inode;
}

bool writer_has_open(pid_t pid, dev_t device, ino_t inode)
{
	char path[PROC_PATH_BYTES];
	bool is_found = false;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)target_speaker(pid));
	DIR *folder = opendir(path);
	struct dirent *entry = NULL;
	while (folder != NULL && !is_found && (entry = readdir(folder)) != NULL) {
		is_found = is_it(dirfd(folder), entry->d_name, device, inode);
	}
	if (folder != NULL) {
		closedir(folder);
	}
	return is_found;
}
