#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Deeper than anything that we make; beyond it a tree is not ours to remove. */
#define TREE_DEPTH 32

/* A name must stay in its folder. */
static bool is_component(const char *name, struct error *err)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		strchr(name, '/') != NULL || strlen(name) > NAME_MAX) {
		return error_set(err, ERROR_IO, "\"%s\" is not the name of a file in a folder", name);
	}
	return true;
}

int files_create(int folder_fd, const char *name, struct error *err)
{
	if (!is_component(name, err)) {
		return -1;
	}
	int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_errno(err, "cannot create %s", name);
	}
	return fd;
}

int files_open(int folder_fd, const char *name, struct error *err)
{
	if (!is_component(name, err)) {
		return -1;
	}
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		error_errno(err, "cannot open %s", name);
		return -1;
	}
	struct stat status;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		close(fd);
		error_set(err, ERROR_IO, "%s is not a regular file", name);
		return -1;
	}
	return fd;
}

int files_make_folder(int parent_fd, const char *name, struct error *err)
{
	if (!is_component(name, err)) {
		return -1;
	}
	if (mkdirat(parent_fd, name, 0700) != 0) {
		error_errno(err, "cannot make the folder %s", name);
		return -1;
	}
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, "cannot open the folder %s that was just made", name);
		unlinkat(parent_fd, name, AT_REMOVEDIR);
	}
	return fd;
}

static void explain_open(const char *path, int reason, struct error *err)
{
	struct stat status;
	bool is_link = lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
	if (reason == ENOENT && !is_link) {
		error_errno_as(err, ERROR_BAD_PARAMS, ENOENT, "the folder %s is missing", path);
		error_hint(err, "make it first: mkdir -p %.400s", path);
	} else if (is_link) {
		error_set(err, ERROR_BAD_PARAMS, "%s is a symbolic link", path);
		error_hint(err, "give the path of the folder that it leads to");
		error_detail(err, "eloop");
	} else if (reason == ENOTDIR) {
		error_errno_as(err, ERROR_BAD_PARAMS, ENOTDIR, "%s is not a folder", path);
		error_hint(err, "give the path of a folder");
	} else if (reason == ENAMETOOLONG) {
		error_errno_as(err, ERROR_BAD_PARAMS, ENAMETOOLONG, "cannot open the folder %s", path);
		error_hint(err, "choose a shorter path");
	} else if (reason == EACCES) {
		error_hint(err, "check the permissions of it and of the folders above it");
	}
}

static bool check_owner(int fd, const char *path, bool must_be_private, struct error *err)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return error_errno(err, "cannot examine the folder %s", path);
	}
	if (status.st_uid != geteuid()) {
		error_set(err, ERROR_NOT_PERMITTED, "the folder %s belongs to user %ld, not to user %ld",
			path, (long)status.st_uid, (long)geteuid());
		error_hint(err, "choose a folder that is yours");
		return error_detail(err, "not_ours");
	}
	if (must_be_private && (status.st_mode & 077) != 0) {
		error_set(err, ERROR_NOT_PERMITTED, "the folder %s is open to others (mode %04o)", path,
			(unsigned)(status.st_mode & 07777));
		error_hint(err, "close it to others: chmod 700 %.400s", path);
		return error_detail(err, "not_private");
	}
	return true;
}

int files_open_folder(const char *path, bool must_be_private, struct error *err)
{
	if (path[0] != '/') {
		error_set(err, ERROR_BAD_PARAMS, "the path \"%s\" is not absolute", path);
		error_hint(err, "give a path that begins with /");
		error_detail(err, "not_absolute");
		return -1;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_errno(err, "cannot open the folder %s", path);
		explain_open(path, errno, err);
		return -1;
	}
	if (!check_owner(fd, path, must_be_private, err)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* One folder on the way. What is there already is looked at by the open at the end, or by the next step. */
static bool make_step(const char *path, bool is_last, struct error *err)
{
	struct stat status;
	if (mkdir(path, 0700) == 0 || errno == EEXIST) {
		return true;
	}
	int reason = errno;
	/* Above a folder that is there, nothing needs to be made, although the kernel may say first that we may not. */
	if ((reason == EROFS || reason == EACCES) && (!is_last || lstat(path, &status) == 0)) {
		return true;
	}
	errno = reason;
	error_errno(err, "cannot make the folder %s", path);
	if (reason != ENOSPC && reason != EDQUOT) {
		error_hint(err, "choose another folder, or make it first, so that it is yours");
	}
	return false;
}

int files_open_or_make_folder(const char *path, struct error *err)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	if (path[0] != '/' || len >= sizeof(part)) {
		error_set(err, ERROR_BAD_PARAMS, "the path \"%s\" is %s", path,
			path[0] != '/' ? "not absolute" : "too long");
		return -1;
	}
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0') {
			continue;
		}
		memcpy(part, path, i);
		part[i] = '\0';
		if (!make_step(part, i == len, err)) {
			return -1;
		}
	}
	return files_open_folder(path, false, err);
}

bool files_write_all(int fd, const void *bytes, size_t len, size_t *written, struct error *err)
{
	size_t done = 0;
	bool ok = true;
	while (ok && done < len) {
		ssize_t count = write(fd, (const char *)bytes + done, len - done);
		if (count > 0) {
			done += (size_t)count;
		} else if (count == 0 || errno != EINTR) {
			errno = count == 0 ? ENOSPC : errno;
			ok = error_errno(err, "cannot write %zu bytes", len - done);
		}
	}
	if (written != NULL) {
		*written = done;
	}
	return ok;
}

bool files_sync(int fd, struct error *err)
{
	int result;
	do {
		result = fsync(fd);
	} while (result != 0 && errno == EINTR);
	return result == 0 || error_errno(err, "cannot bring a file to the disk");
}

bool files_rename(int folder_fd, const char *from, const char *to, struct error *err)
{
	if (!is_component(from, err) || !is_component(to, err)) {
		return false;
	}
	return renameat(folder_fd, from, folder_fd, to) == 0 ||
		   error_errno(err, "cannot rename %s to %s", from, to);
}

static bool replace(
	int folder_fd, const char *name, const void *bytes, size_t len, bool sync, struct error *err)
{
	char temporary[NAME_MAX + 1];
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", name) >= (int)sizeof(temporary)) {
		return error_set(err, ERROR_IO, "the name %s is too long", name);
	}
	if (!files_remove(folder_fd, temporary, err)) {
		return false;
	}
	int fd = files_create(folder_fd, temporary, err);
	if (fd < 0) {
		return false;
	}
	bool ok = files_write_all(fd, bytes, len, NULL, err) && (!sync || files_sync(fd, err));
	close(fd);
	ok = ok && files_rename(folder_fd, temporary, name, err);
	if (!ok) {
		files_remove(folder_fd, temporary, NULL);
		return error_wrap(err, "cannot replace %s", name);
	}
	return !sync || files_sync(folder_fd, err);
}

bool files_put(int folder_fd, const char *name, const void *bytes, size_t len, struct error *err)
{
	return replace(folder_fd, name, bytes, len, false, err);
}

bool files_replace(
	int folder_fd, const char *name, const void *bytes, size_t len, struct error *err)
{
	return replace(folder_fd, name, bytes, len, true, err);
}

bool files_remove(int folder_fd, const char *name, struct error *err)
{
	if (!is_component(name, err)) {
		return false;
	}
	return unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT ||
		   error_errno(err, "cannot remove %s", name);
}

static bool empty_folder(int fd, dev_t device, int depth, struct error *err);

/* A folder on another file system is a mount point: its content is not ours. */
static bool remove_entry(
	int folder_fd, const char *name, dev_t device, int depth, struct error *err)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		if (errno == ENOENT) {
			return true;
		}
		if (errno != ENOTDIR && errno != ELOOP) {
			return error_errno(err, "cannot open the folder %s", name);
		}
		return files_remove(folder_fd, name, err);
	}
	bool ok = empty_folder(fd, device, depth, err); /* takes fd */
	if (ok && unlinkat(folder_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
		ok = error_errno(err, "cannot remove the folder %s", name);
	}
	return ok;
}

static bool empty_folder(int fd, dev_t device, int depth, struct error *err)
{
	struct stat status;
	if (depth == 0 || fstat(fd, &status) != 0 || status.st_dev != device) {
		close(fd);
		return error_set(err, ERROR_IO, "a folder is %s, it was left as it is",
			depth == 0 ? "nested too deeply" : "on another file system");
	}
	DIR *dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
	}
	bool ok = true;
	for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			ok = remove_entry(fd, entry->d_name, device, depth - 1, err);
		}
	}
	closedir(dir);
	return ok;
}

bool files_remove_tree(int parent_fd, const char *name, struct error *err)
{
	struct stat status;
	if (!is_component(name, err)) {
		return false;
	}
	if (fstat(parent_fd, &status) != 0) {
		return error_errno(err, "cannot examine the folder of %s", name);
	}
	return remove_entry(parent_fd, name, status.st_dev, TREE_DEPTH, err);
}

static char *read_all(int fd, const char *name, size_t size, size_t *len, struct error *err)
{
	char *text = malloc(size + 1);
	if (text == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the %zu bytes of %s", size, name);
		return NULL;
	}
	size_t used = 0;
	while (used < size) {
		ssize_t count = read(fd, text + used, size - used);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			error_errno(err, "cannot read %s", name);
			free(text);
			return NULL;
		}
		if (count == 0) {
			break;
		}
		used += (size_t)count;
	}
	text[used] = '\0';
	*len = used;
	return text;
}

char *files_read(int folder_fd, const char *name, size_t max_bytes, size_t *len, struct error *err)
{
	int fd = files_open(folder_fd, name, err);
	if (fd < 0) {
		return NULL;
	}
	struct stat status;
	char *text = NULL;
	if (fstat(fd, &status) != 0) {
		error_errno(err, "cannot examine %s", name);
	} else if ((uint64_t)status.st_size > max_bytes) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "%s has %lld bytes, at most %zu are read", name,
			(long long)status.st_size, max_bytes);
	} else {
		text = read_all(fd, name, (size_t)status.st_size, len, err);
	}
	close(fd);
	return text;
}
