#include "protocol/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "protocol/names.h"
#include "protocol/peer.h"

/* A full backlog answers EAGAIN at once: so often, so long apart, the connection is tried again. */
#define CONNECT_TRIES   100
#define CONNECT_WAIT_NS 20000000L

static bool too_long(const char *path, size_t len, struct error *err)
{
	error_set(err, ERROR_BAD_PARAMS,
		"the socket path %s has %zu bytes, a socket's path at most %zu", path, len,
		SOCKET_PATH_BYTES - 1);
	error_detail(err, "path_too_long");
	return error_hint(err, "choose a shorter path with --socket or " ENV_SOCKET);
}

/* A path that a person gave; a relative one is meant from the working folder. */
static bool take_given(const char *given, const char *source, char *path, struct error *err)
{
	char full[2 * PATH_MAX];
	if (given[0] == '\0') {
		return error_set(err, ERROR_BAD_PARAMS, "%s is an empty socket path", source);
	}
	size_t given_len = strlen(given);
	if (given[given_len - 1] == '/') {
		error_set(err, ERROR_BAD_PARAMS, "the socket path %s ends with a slash", given);
		return error_hint(err, "name a file in a folder of your own: --socket DIR/profd.sock");
	}
	if (given_len >= PATH_MAX) {
		return too_long(given, given_len, err);
	}
	int len = 0;
	if (given[0] == '/') {
		len = snprintf(full, sizeof(full), "%s", given);
	} else {
		char folder[PATH_MAX];
		if (getcwd(folder, sizeof(folder)) == NULL) {
			return error_errno(err, "the working folder, for the socket path %s", given);
		}
		len = snprintf(full, sizeof(full), "%s/%s", folder, given);
	}
	if ((size_t)len >= SOCKET_PATH_BYTES) {
		return too_long(full, (size_t)len, err);
	}
	memcpy(path, full, (size_t)len + 1);
	return true;
}

/* A folder is used only when nobody else can reach into it. */
static bool is_private_folder(const char *folder)
{
	struct stat status;
	return folder[0] == '/' && stat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
		   status.st_uid == geteuid() && (status.st_mode & 0777) == 0700;
}

bool socket_path_find(const char *given, char *path, struct error *err)
{
	if (given != NULL) {
		return take_given(given, "--socket", path, err);
	}
	const char *variable = getenv(ENV_SOCKET);
	if (variable != NULL && variable[0] != '\0') {
		return take_given(variable, ENV_SOCKET, path, err);
	}
	char found[2 * PATH_MAX];
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int len = 0;
	if (runtime != NULL && strlen(runtime) < PATH_MAX && is_private_folder(runtime)) {
		len = snprintf(found, sizeof(found), "%s/profd/profd.sock", runtime);
	} else {
		len = snprintf(found, sizeof(found), "/tmp/profd-%u/profd.sock", (unsigned)geteuid());
	}
	if ((size_t)len >= SOCKET_PATH_BYTES) {
		return too_long(found, (size_t)len, err);
	}
	memcpy(path, found, (size_t)len + 1);
	return true;
}

/* /tmp, /etc and the like: others need them open. */
static bool is_everybodys(const char *folder, mode_t mode)
{
	return (mode & S_ISVTX) != 0 || strrchr(folder, '/') == folder;
}

static bool check_folder(const char *folder, struct error *err)
{
	struct stat status;
	/* Not followed: in /tmp anybody can put a link in the folder's place. */
	if (lstat(folder, &status) != 0) {
		return error_errno(err, "the socket's folder %s", folder);
	}
	if (!S_ISDIR(status.st_mode)) {
		error_set(err, ERROR_NOT_PERMITTED, "the socket's folder %s is %s", folder,
			S_ISLNK(status.st_mode) ? "a symbolic link" : "not a folder");
		return error_hint(err, "remove it, or choose another socket with --socket");
	}
	if (status.st_uid != geteuid()) {
		error_set(err, ERROR_NOT_PERMITTED,
			"the socket's folder %s belongs to user %u, and profd runs as user %u", folder,
			(unsigned)status.st_uid, (unsigned)geteuid());
		return error_hint(err, "choose a socket in a folder of your own: --socket DIR/profd.sock, "
							   "where DIR need not exist");
	}
	if ((status.st_mode & 077) != 0) {
		error_set(err, ERROR_NOT_PERMITTED, "the socket's folder %s is open to others (mode %04o)",
			folder, (unsigned)(status.st_mode & 07777));
		if (is_everybodys(folder, status.st_mode)) {
			return error_hint(err, "use a folder of its own for it, with mode 0700: --socket "
								   "DIR/profd.sock, where DIR need not exist");
		}
		return error_hint(err,
			"chmod 700 %s, unless others need it: then choose another folder "
			"with --socket",
			folder);
	}
	return true;
}

bool socket_path_prepare(const char *path, struct error *err)
{
	char folder[SOCKET_PATH_BYTES];
	size_t len = strlen(path);
	if (len >= sizeof(folder)) {
		return too_long(path, len, err);
	}
	memcpy(folder, path, len + 1);
	char *slash = strrchr(folder, '/');
	if (slash == NULL) {
		return error_set(err, ERROR_BAD_PARAMS, "the socket path %s is not absolute", path);
	}
	slash[slash == folder ? 1 : 0] = '\0';
	if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
		error_errno(err, "make the socket's folder %s", folder);
		return error_hint(err, "make it with mode 0700, or choose another socket with --socket");
	}
	return check_folder(folder, err);
}

static bool connect_patiently(int fd, const struct sockaddr_un *address)
{
	for (int try = 0; try < CONNECT_TRIES; try++) {
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0) {
			return true;
		}
		if (errno != EAGAIN && errno != EINTR) {
			return false;
		}
		nanosleep(&(struct timespec){.tv_nsec = CONNECT_WAIT_NS}, NULL);
	}
	errno = EAGAIN;
	return false;
}

/* Why nobody was reached: errno of the connect. */
static void tell_unreached(const char *path, struct error *err)
{
	int problem = errno;
	struct stat status;
	bool is_there = lstat(path, &status) == 0;
	errno = problem;
	if (is_there && problem == ECONNREFUSED && !S_ISSOCK(status.st_mode)) {
		error_set(err, ERROR_IO, "%s is not a socket", path);
		error_detail(err, "not_a_socket");
		error_hint(err, "remove it, or choose another path with --socket");
	} else if (problem == ECONNREFUSED) {
		error_set(err, ERROR_IO, "no profd listens on %s any more: the socket is stale", path);
		error_detail(err, "not_running");
		error_hint(err, "start it again, it replaces the socket: profd --socket %s", path);
	} else if (problem == ENOENT) {
		error_set(err, ERROR_IO, "no profd listens on %s", path);
		error_detail(err, "not_running");
		error_hint(err, "start it: profd --socket %s", path);
	} else if (problem == EAGAIN) {
		error_set(err, ERROR_TIMEOUT, "profd at %s takes no connection for %d ms: too many wait",
			path, (int)(CONNECT_TRIES * (CONNECT_WAIT_NS / 1000000)));
		error_detail(err, "hung");
		error_hint(err, "look at the daemon's log, or end it");
	} else {
		error_errno(err, "connect to %s", path);
	}
}

int socket_path_connect(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(path);
	if (len >= sizeof(address.sun_path)) {
		too_long(path, len, err);
		return -1;
	}
	memcpy(address.sun_path, path, len + 1);
	/* A full backlog would block a blocking socket for as long as the daemon hangs. */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		error_errno(err, "make a socket");
		return -1;
	}
	if (!connect_patiently(fd, &address)) {
		tell_unreached(path, err);
		goto fail;
	}
	if (fcntl(fd, F_SETFL, 0) != 0) {
		error_errno(err, "make the connection to %s a blocking one", path);
		goto fail;
	}
	/* Whoever listens gets our requests, with environments in them. */
	struct peer peer;
	if (!peer_read(fd, &peer, err) || !peer_is_trusted(&peer, err)) {
		error_wrap(err, "%s", path);
		goto fail;
	}
	return fd;

fail:
	close(fd);
	return -1;
}
