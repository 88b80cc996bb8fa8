#include "store/output_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define LINKS_MAX 40 /* as the kernel */

struct walk {
	int fd;              /* owned: where we are (O_PATH) */
	char rest[PATH_MAX]; /* still to go */
	int links;
};

/* Goes to fd. */
static void move_to(struct walk *walk, int fd)
{
	if (walk->fd >= 0) {
		close(walk->fd);
	}
	walk->fd = fd;
}

static bool go_to_root(struct walk *walk)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		move_to(walk, fd);
	}
	return fd >= 0;
}

/* Takes the next component out of rest; false behind the last. */
static bool next_component(struct walk *walk, char name[NAME_MAX + 1])
{
	size_t start = strspn(walk->rest, "/");
	size_t len = strcspn(walk->rest + start, "/");
	if (len == 0 || len > NAME_MAX) {
		return false;
	}
	memcpy(name, walk->rest + start, len);
	name[len] = '\0';
	memmove(walk->rest, walk->rest + start + len, strlen(walk->rest + start + len) + 1);
	return true;
}

static bool is_at_the_end(const struct walk *walk)
{
	return walk->rest[strspn(walk->rest, "/")] == '\0';
}

/* Puts what the link says before the rest. errno is set on failure. */
static bool follow(struct walk *walk, int link)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t len = readlinkat(link, "", text, sizeof(text) - 1);
	if (len <= 0 || ++walk->links > LINKS_MAX) {
		errno = len < 0 ? errno : ELOOP;
		return false;
	}
	text[len] = '\0';
	if ((size_t)len + 1 + strlen(walk->rest) >= sizeof(rest)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(rest, text);
	strcat(strcat(rest, "/"), walk->rest);
	strcpy(walk->rest, rest);
	return text[0] != '/' || go_to_root(walk);
}

/* A link that somebody else made leads where he wants, and elsewhere the next time. */
static bool may_follow(
	const struct stat *status, const char *path, const char *name, struct error *err)
{
	if (status->st_uid == 0 || status->st_uid == geteuid()) {
		return true;
	}
	error_set(err, ERROR_NOT_PERMITTED, "the path %s leads over the symbolic link %s of user %ld",
		path, name, (long)status->st_uid);
	error_hint(err, "give the path of the folder itself, without that link");
	return error_detail(err, "foreign_link");
}

enum step { STEP_DONE, STEP_FAILED, STEP_REFUSED /* err is set */ };

static enum step take_step(struct walk *walk, const char *path, const char *name, struct error *err)
{
	struct stat status;
	int next = openat(walk->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0) {
		return STEP_FAILED;
	}
	enum step result = STEP_FAILED;
	if (fstat(next, &status) != 0) {
		/* errno says why */
	} else if (S_ISDIR(status.st_mode)) {
		move_to(walk, next);
		return STEP_DONE;
	} else if (!S_ISLNK(status.st_mode) || is_at_the_end(walk)) {
		errno = S_ISLNK(status.st_mode) ? ELOOP : ENOTDIR;
	} else if (!may_follow(&status, path, name, err)) {
		result = STEP_REFUSED;
	} else if (follow(walk, next)) {
		result = STEP_DONE;
	}
	int reason = errno;
	close(next);
	errno = reason;
	return result;
}

static bool check_mode(int fd, const char *path, struct error *err)
{
	struct stat status;
	if (fstat(fd, &status) != 0) {
		return error_errno(err, "cannot examine the folder %s", path);
	}
	if ((status.st_mode & S_IWOTH) == 0 || (status.st_mode & S_ISVTX) != 0) {
		return true;
	}
	error_set(err, ERROR_NOT_PERMITTED, "everyone may rename what is in the folder %s (mode %04o)",
		path, (unsigned)(status.st_mode & 07777));
	error_hint(err, "close it to others: chmod o-w %.400s", path);
	return error_detail(err, "open_to_all");
}

/* The words for what went wrong are those of every other folder. */
static void explain(const char *path, int reason, struct error *err)
{
	int fd = files_open_folder(path, false, err);
	if (fd < 0) {
		return;
	}
	close(fd);
	errno = reason;
	error_errno(err, "the folder %s cannot be used", path);
	if (reason == EACCES) {
		error_hint(err, "choose another folder, or: chmod u+rwx %.400s", path);
	}
}

static int open_walked(const struct walk *walk, const char *path, struct error *err)
{
	struct stat status;
	int fd = openat(walk->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		explain(path, errno, err);
		return -1;
	}
	if (fstat(fd, &status) != 0) {
		error_errno(err, "cannot examine the folder %s", path);
	} else if (status.st_uid != geteuid()) {
		explain(path, EPERM, err);
	} else if (check_mode(fd, path, err)) {
		return fd;
	}
	close(fd);
	return -1;
}

static int walk_and_open(const char *path, struct error *err)
{
	struct walk walk = {.fd = -1};
	char name[NAME_MAX + 1];
	enum step step = STEP_DONE;
	strcpy(walk.rest, path);
	if (!go_to_root(&walk)) {
		explain(path, errno, err);
		return -1;
	}
	while (step == STEP_DONE && next_component(&walk, name)) {
		step = take_step(&walk, path, name, err);
	}
	int fd = -1;
	if (step == STEP_DONE && is_at_the_end(&walk)) {
		fd = open_walked(&walk, path, err);
	} else if (step != STEP_REFUSED) {
		explain(path, step == STEP_FAILED ? errno : ENAMETOOLONG, err);
	}
	close(walk.fd);
	return fd;
}

/* Slashes at the end would make the kernel follow a link that is the last component. */
int output_dir_open(const char *path, struct error *err)
{
	char trimmed[PATH_MAX];
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/') {
		len--;
	}
	if (path[0] != '/' || len >= sizeof(trimmed)) {
		return files_open_folder(path, false, err); /* it says why not */
	}
	memcpy(trimmed, path, len);
	trimmed[len] = '\0';
	return walk_and_open(trimmed, err);
}
