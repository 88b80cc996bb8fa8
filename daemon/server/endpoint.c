#include "server/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG         128
#define LOCK_STEP_MS    20
#define LOCK_WAIT_MS    2000
#define LOCK_PATH_BYTES (SOCKET_PATH_BYTES + sizeof(".lock"))

void endpoint_init(struct endpoint *endpoint)
{
	*endpoint = (struct endpoint){.lock_fd = -1};
}

static bool is_file(const char *path, dev_t device, ino_t inode)
{
	struct stat status;
	return lstat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static void lock_path(const struct endpoint *endpoint, char path[LOCK_PATH_BYTES])
{
	snprintf(path, LOCK_PATH_BYTES, "%s.lock", endpoint->path);
}

static bool has_lock(const struct endpoint *endpoint)
{
	char path[LOCK_PATH_BYTES];
	struct stat status;
	lock_path(endpoint, path);
	return endpoint->lock_fd >= 0 && fstat(endpoint->lock_fd, &status) == 0 &&
		   is_file(path, status.st_dev, status.st_ino);
}

void endpoint_finish(struct endpoint *endpoint)
{
	if (!endpoint->is_given && endpoint->inode != 0 &&
		is_file(endpoint->path, endpoint->device, endpoint->inode)) {
		unlink(endpoint->path);
	}
	endpoint->inode = 0;
	if (endpoint->lock_fd >= 0) {
		close(endpoint->lock_fd);
		endpoint->lock_fd = -1;
	}
}

static bool refuse_second(int lock_fd, const char *path, struct error *err)
{
	char pid[32] = "";
	ssize_t len = pread(lock_fd, pid, sizeof(pid) - 1, 0);
	pid[len > 0 ? strspn(pid, "0123456789") : 0] = '\0';
	error_set(err, ERROR_LIMIT_EXCEEDED, "another profd (pid %s) serves %s",
		pid[0] != '\0' ? pid : "unknown", path);
	error_detail(err, "already_running");
	return error_hint(err, "use that one, stop it, or choose another socket with --socket");
}

static void write_pid(int lock_fd)
{
	/* For people; a full disk keeps nobody from locking. */
	if (ftruncate(lock_fd, 0) == 0) {
		dprintf(lock_fd, "%d\n", (int)getpid());
	}
}

/* The lock is never unlinked: two daemons could hold locks on two files of one name. */
static pid_t holder(int lock_fd)
{
	char text[32] = "";
	ssize_t len = pread(lock_fd, text, sizeof(text) - 1, 0);
	return len > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

/*
 * A daemon that was killed while it started a program leaves a child that has everything of it for the moment until its exec: the lock
 * too. False: errno.
 */
static bool lock_patiently(int fd)
{
	for (int waited_ms = 0;; waited_ms += LOCK_STEP_MS) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			return true;
		}
		int why = errno;
		pid_t pid = holder(fd);
		bool is_dead = why == EWOULDBLOCK && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
		if (!is_dead || waited_ms >= LOCK_WAIT_MS) {
			errno = why;
			return false;
		}
		nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * 1000000L}, NULL);
	}
}

static bool take_lock(struct endpoint *endpoint, struct error *err)
{
	char path[LOCK_PATH_BYTES];
	lock_path(endpoint, path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		return error_errno(err, "open the lock %s", path);
	}
	if (!lock_patiently(fd)) {
		bool is_held = errno == EWOULDBLOCK;
		error_errno(err, "lock %s", path);
		if (is_held) {
			refuse_second(fd, endpoint->path, err);
		}
		close(fd);
		return false;
	}
	write_pid(fd);
	if (endpoint->lock_fd >= 0) {
		close(endpoint->lock_fd);
	}
	endpoint->lock_fd = fd;
	return true;
}

/* Nothing there, or a socket of ours: then it is stale, because we hold the lock. */
static bool is_replaceable(const char *path, struct error *err)
{
	struct stat status;
	if (lstat(path, &status) != 0) {
		return errno == ENOENT || error_errno(err, "%s", path);
	}
	if (!S_ISSOCK(status.st_mode) || status.st_uid != geteuid()) {
		error_set(err, ERROR_NOT_PERMITTED, "%s is in the way: it is not a socket of user %u", path,
			(unsigned)geteuid());
		error_detail(err, "not_a_socket");
		return error_hint(err, "remove it, or choose another socket with --socket");
	}
	return true;
}

/* A name beside the final one, and never longer than a socket's path may be. */
static void temporary_path(const struct endpoint *endpoint, char *path)
{
	int len = snprintf(path, SOCKET_PATH_BYTES, "%s.new", endpoint->path);
	if ((size_t)len >= SOCKET_PATH_BYTES) {
		memcpy(path, endpoint->path, SOCKET_PATH_BYTES);
		path[strlen(path) - 1] = path[strlen(path) - 1] == '~' ? '-' : '~';
	}
}

static bool bind_at(int fd, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (!is_replaceable(path, err)) {
		return false;
	}
	unlink(path);
	/* The name gets the socket's mode, whatever the umask. */
	if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		return error_errno(err, "bind a socket to %s", path);
	}
	return true;
}

/* A listening socket under its final name, where it appears in one step and ready. -1: err. */
static int make_socket(struct endpoint *endpoint, struct error *err)
{
	char temporary[SOCKET_PATH_BYTES];
	struct stat status;
	temporary_path(endpoint, temporary);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		error_errno(err, "make a socket");
		return -1;
	}
	if (!is_replaceable(endpoint->path, err) || !bind_at(fd, temporary, err)) {
		goto fail;
	}
	if (listen(fd, BACKLOG) != 0 || lstat(temporary, &status) != 0 ||
		rename(temporary, endpoint->path) != 0) {
		error_errno(err, "listen on %s", endpoint->path);
		unlink(temporary);
		goto fail;
	}
	endpoint->device = status.st_dev;
	endpoint->inode = status.st_ino;
	return fd;

fail:
	close(fd);
	return -1;
}

int endpoint_listen(struct endpoint *endpoint, const char *path, struct error *err)
{
	if (!socket_path_prepare(path, err)) {
		return -1;
	}
	snprintf(endpoint->path, sizeof(endpoint->path), "%s", path);
	if (!is_replaceable(path, err) || (!has_lock(endpoint) && !take_lock(endpoint, err))) {
		return -1;
	}
	return make_socket(endpoint, err);
}

static bool is_listening_socket(int fd)
{
	int type = 0, listens = 0;
	socklen_t len = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
		   getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

bool endpoint_take(struct endpoint *endpoint, int fd, struct error *err)
{
	struct sockaddr_un address = {0};
	socklen_t len = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0 || address.sun_family != AF_UNIX ||
		!is_listening_socket(fd)) {
		error_set(err, ERROR_BAD_PARAMS,
			"descriptor %d, passed to profd as its socket, is not a listening Unix stream socket",
			fd);
		return error_hint(err, "use ListenStream= with a path in the socket unit");
	}
	if (address.sun_path[0] != '/') {
		error_set(err, ERROR_BAD_PARAMS, "the socket passed to profd has no absolute path");
		return error_hint(err, "use ListenStream= with a path in the socket unit");
	}
	size_t max = sizeof(endpoint->path) - 1;
	snprintf(endpoint->path, sizeof(endpoint->path), "%.*s", (int)max, address.sun_path);
	endpoint->is_given = true;
	return socket_path_prepare(endpoint->path, err) && take_lock(endpoint, err);
}

bool endpoint_is_missing(const struct endpoint *endpoint)
{
	return !endpoint->is_given &&
		   (!has_lock(endpoint) || !is_file(endpoint->path, endpoint->device, endpoint->inode));
}

int endpoint_restore(struct endpoint *endpoint, struct error *err)
{
	char path[SOCKET_PATH_BYTES];
	memcpy(path, endpoint->path, sizeof(path));
	return endpoint_listen(endpoint, path, err);
}
