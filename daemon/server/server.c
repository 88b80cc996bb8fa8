#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/socket_path.h"
#include "server/client.h"

#define BACKLOG 128

struct server {
	struct server_options options;
	char path[SOCKET_PATH_BYTES];
	int lock_fd;
	dev_t device; /* of the socket's name: is it still ours? */
	ino_t inode;  /* 0: none was made */
	uv_pipe_t listener;
	uv_timer_t flush;
	bool is_listening; /* both handles are open */
	unsigned handles;  /* not closed yet */
	bool is_closing, is_closed;
	struct clients clients;
	struct events *events;
	void (*closed)(void *context);
};

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
static bool take_lock(struct server *server, struct error *err)
{
	char path[SOCKET_PATH_BYTES + sizeof(".lock")];
	snprintf(path, sizeof(path), "%s.lock", server->path);
	server->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (server->lock_fd < 0) {
		return error_errno(err, "open the lock %s", path);
	}
	if (flock(server->lock_fd, LOCK_EX | LOCK_NB) == 0) {
		write_pid(server->lock_fd);
		return true;
	}
	if (errno == EWOULDBLOCK) {
		return refuse_second(server->lock_fd, server->path, err);
	}
	return error_errno(err, "lock %s", path);
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
static void temporary_path(const struct server *server, char *path)
{
	int len = snprintf(path, SOCKET_PATH_BYTES, "%s.new", server->path);
	if ((size_t)len >= SOCKET_PATH_BYTES) {
		memcpy(path, server->path, SOCKET_PATH_BYTES);
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
static int make_socket(struct server *server, struct error *err)
{
	char temporary[SOCKET_PATH_BYTES];
	struct stat status;
	temporary_path(server, temporary);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		error_errno(err, "make a socket");
		return -1;
	}
	if (!is_replaceable(server->path, err) || !bind_at(fd, temporary, err)) {
		goto fail;
	}
	if (listen(fd, BACKLOG) != 0 || lstat(temporary, &status) != 0 ||
		rename(temporary, server->path) != 0) {
		error_errno(err, "listen on %s", server->path);
		unlink(temporary);
		goto fail;
	}
	server->device = status.st_dev;
	server->inode = status.st_ino;
	return fd;

fail:
	close(fd);
	return -1;
}

static void remove_socket(struct server *server)
{
	struct stat status;
	if (server->inode != 0 && lstat(server->path, &status) == 0 &&
		status.st_dev == server->device && status.st_ino == server->inode) {
		unlink(server->path);
	}
	server->inode = 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	if (status != 0) {
		/* Out of descriptors: libuv has closed whoever waited. */
		log_write(server->options.log, LOG_WARN, "server", "accept: %s", uv_strerror(status));
		return;
	}
	client_accept(&server->clients, listener);
}

/* Takes fd. */
static bool start_listening(struct server *server, int fd, struct error *err)
{
	uv_pipe_init(server->options.loop, &server->listener, 0);
	uv_timer_init(server->options.loop, &server->flush);
	server->listener.data = server;
	server->flush.data = server;
	server->is_listening = true;
	server->handles = 2;
	int rc = uv_pipe_open(&server->listener, fd);
	if (rc != 0) {
		close(fd);
	} else {
		rc = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
	}
	return rc == 0 || error_errno_as(err, ERROR_IO, rc, "listen on %s", server->path);
}

struct server *server_open(const struct server_options *options, struct error *err)
{
	struct server *server = calloc(1, sizeof(*server));
	if (server == NULL) {
		error_errno(err, "allocate the server");
		return NULL;
	}
	server->options = *options;
	server->lock_fd = -1;
	server->clients =
		(struct clients){.loop = options->loop, .log = options->log, .options = &server->options};
	if (!socket_path_prepare(options->socket_path, err)) {
		goto fail;
	}
	snprintf(server->path, sizeof(server->path), "%s", options->socket_path);
	server->events = events_create(&server->clients);
	server->clients.events = server->events;
	if (server->events == NULL) {
		error_errno(err, "allocate the events");
		goto fail;
	}
	if (!take_lock(server, err)) {
		goto fail;
	}
	int fd = make_socket(server, err);
	if (fd < 0 || !start_listening(server, fd, err)) {
		goto fail;
	}
	return server;

fail:
	server_destroy(server);
	return NULL;
}

static void finish_closing(struct server *server)
{
	if (server->is_closed || server->handles > 0 || server->clients.first != NULL) {
		return;
	}
	server->is_closed = true;
	if (server->closed != NULL) {
		server->closed(server->options.context);
	}
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct server *server = handle->data;
	server->handles--;
	finish_closing(server);
}

static void on_emptied(void *context)
{
	struct server *server = context;
	if (!uv_is_closing((uv_handle_t *)&server->flush)) {
		uv_close((uv_handle_t *)&server->flush, on_handle_closed);
	}
	finish_closing(server);
}

static void on_flush_over(uv_timer_t *timer)
{
	struct server *server = timer->data;
	clients_close(&server->clients);
}

void server_close(struct server *server, uint64_t flush_ms, void (*closed)(void *context))
{
	if (server->is_closing) {
		return;
	}
	server->is_closing = true;
	server->closed = closed;
	remove_socket(server);
	uv_close((uv_handle_t *)&server->listener, on_handle_closed);
	server->clients.emptied = on_emptied;
	server->clients.emptied_context = server;
	if (server->clients.first == NULL) {
		on_emptied(server);
		return;
	}
	uv_timer_start(&server->flush, on_flush_over, flush_ms, 0);
	clients_drain(&server->clients);
}

void server_destroy(struct server *server)
{
	if (server == NULL) {
		return;
	}
	if (server->is_listening) {
		server_close(server, 0, NULL);
		/* libuv keeps its handles until its loop has turned. */
		while (!server->is_closed) {
			uv_run(server->options.loop, UV_RUN_ONCE);
		}
	}
	remove_socket(server);
	events_destroy(server->events);
	if (server->lock_fd >= 0) {
		close(server->lock_fd);
	}
	free(server);
}

size_t server_clients(const struct server *server)
{
	return server->clients.open;
}

struct events *server_events(struct server *server)
{
	return server->events;
}
