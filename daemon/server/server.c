#include "server/server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/client.h"
#include "server/endpoint.h"

#define BACKLOG         128
#define RESTORE_SOON_MS 1000  /* whoever removes a folder is to be done with it */
#define RESTORE_MS      15000 /* after a failure, and to look where no watch is to be had */

struct server {
	struct server_options options;
	struct endpoint endpoint;
	struct listener *listener; /* NULL: none yet */
	uv_timer_t flush;
	uv_fs_event_t watch; /* of the folder of the socket */
	uv_timer_t restore;  /* when its name is gone */
	bool is_watched;     /* watch has been started */
	bool has_handles;    /* those three are open */
	unsigned handles;    /* not closed yet, with those of listeners */
	bool is_closing, is_closed;
	struct clients clients;
	struct events *events;
	void (*closed)(void *context);
};

/* A listening socket: a new one when its name had to be restored. */
struct listener {
	uv_pipe_t pipe;
	struct server *server;
};

static void on_connection(uv_stream_t *stream, int status)
{
	struct listener *listener = stream->data;
	struct server *server = listener->server;
	if (status != 0) {
		/* Out of descriptors: libuv has closed whoever waited. */
		log_write(server->options.log, LOG_WARN, "server", "accept: %s", uv_strerror(status));
		return;
	}
	client_accept(&server->clients, stream);
}

static void finish_closing(struct server *server)
{
	if (server->is_closed || !server->is_closing || server->handles > 0 ||
		server->clients.first != NULL) {
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

static void on_listener_closed(uv_handle_t *handle)
{
	struct listener *listener = handle->data;
	struct server *server = listener->server;
	free(listener);
	server->handles--;
	finish_closing(server);
}

static void stop_listening(struct server *server)
{
	if (server->listener != NULL) {
		uv_close((uv_handle_t *)&server->listener->pipe, on_listener_closed);
		server->listener = NULL;
	}
}

/* Takes fd. The socket that was listened to before is closed. */
static bool start_listening(struct server *server, int fd, struct error *err)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	if (listener == NULL) {
		close(fd);
		return error_errno(err, "allocate the listener");
	}
	stop_listening(server);
	listener->server = server;
	uv_pipe_init(server->options.loop, &listener->pipe, 0);
	listener->pipe.data = listener;
	server->listener = listener;
	server->handles++;
	int rc = uv_pipe_open(&listener->pipe, fd);
	if (rc != 0) {
		close(fd);
	} else {
		rc = uv_listen((uv_stream_t *)&listener->pipe, BACKLOG, on_connection);
	}
	return rc == 0 || error_errno_as(err, ERROR_IO, rc, "listen on %s", server->endpoint.path);
}

/* --- a name that was removed --- */

static void on_restore(uv_timer_t *timer);

static void on_folder_changed(uv_fs_event_t *watch, const char *name, int events, int status)
{
	struct server *server = watch->data;
	(void)name;
	(void)events;
	if (status < 0 || endpoint_is_missing(&server->endpoint)) {
		uv_timer_start(&server->restore, on_restore, RESTORE_SOON_MS, 0);
	}
}

/* Told by the kernel, so that an idle daemon sleeps; looked at in turns where that cannot be had. */
static void watch_folder(struct server *server)
{
	char folder[SOCKET_PATH_BYTES];
	memcpy(folder, server->endpoint.path, sizeof(folder));
	char *slash = strrchr(folder, '/');
	slash[slash == folder ? 1 : 0] = '\0';
	uv_fs_event_stop(&server->watch);
	int status = uv_fs_event_start(&server->watch, on_folder_changed, folder, 0);
	server->is_watched = status == 0;
	if (status != 0) {
		log_write(server->options.log, LOG_WARN, "server",
			"%s cannot be watched (%s): it is looked at every %d s", folder, uv_strerror(status),
			RESTORE_MS / 1000);
		uv_timer_start(&server->restore, on_restore, RESTORE_MS, 0);
	}
}

static bool restore(struct server *server, struct error *err)
{
	int fd = endpoint_restore(&server->endpoint, err);
	return fd >= 0 && start_listening(server, fd, err);
}

static void on_restore(uv_timer_t *timer)
{
	struct server *server = timer->data;
	struct error err = {0};
	if (!endpoint_is_missing(&server->endpoint)) {
		if (!server->is_watched) {
			watch_folder(server);
		}
		return;
	}
	if (restore(server, &err)) {
		log_write(server->options.log, LOG_WARN, "server",
			"the socket %s was removed by somebody: it was made again", server->endpoint.path);
		watch_folder(server);
		return;
	}
	log_write(server->options.log, LOG_ERROR, "server",
		"the socket was removed by somebody and cannot be made again: %s", err.message);
	uv_timer_start(&server->restore, on_restore, RESTORE_MS, 0);
}

/* --- */

static void open_handles(struct server *server)
{
	uv_loop_t *loop = server->options.loop;
	uv_timer_init(loop, &server->flush);
	uv_timer_init(loop, &server->restore);
	uv_fs_event_init(loop, &server->watch);
	server->flush.data = server->restore.data = server->watch.data = server;
	server->has_handles = true;
	server->handles += 3;
}

static bool listen_somewhere(struct server *server, struct error *err)
{
	int fd = server->options.activated_fd;
	if (fd == 0) {
		fd = endpoint_listen(&server->endpoint, server->options.socket_path, err);
	} else if (!endpoint_take(&server->endpoint, fd, err)) {
		fd = -1;
	}
	if (fd < 0) {
		return false;
	}
	open_handles(server);
	if (!start_listening(server, fd, err)) {
		return false;
	}
	if (!server->endpoint.is_given) {
		watch_folder(server);
	}
	return true;
}

struct server *server_open(const struct server_options *options, struct error *err)
{
	struct server *server = calloc(1, sizeof(*server));
	if (server == NULL) {
		error_errno(err, "allocate the server");
		return NULL;
	}
	server->options = *options;
	endpoint_init(&server->endpoint);
	server->clients =
		(struct clients){.loop = options->loop, .log = options->log, .options = &server->options};
	server->events = events_create(&server->clients);
	server->clients.events = server->events;
	if (server->events == NULL) {
		error_errno(err, "allocate the events");
		goto fail;
	}
	if (!listen_somewhere(server, err)) {
		goto fail;
	}
	return server;

fail:
	server_destroy(server);
	return NULL;
}

static void close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle)) {
		uv_close(handle, on_handle_closed);
	}
}

static void on_emptied(void *context)
{
	struct server *server = context;
	close_handle((uv_handle_t *)&server->flush);
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
	endpoint_finish(&server->endpoint);
	stop_listening(server);
	close_handle((uv_handle_t *)&server->restore);
	close_handle((uv_handle_t *)&server->watch);
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
	if (server->has_handles) {
		server_close(server, 0, NULL);
		/* libuv keeps its handles until its loop has turned. */
		while (!server->is_closed) {
			uv_run(server->options.loop, UV_RUN_ONCE);
		}
	}
	endpoint_finish(&server->endpoint);
	events_destroy(server->events);
	free(server);
}

const char *server_path(const struct server *server)
{
	return server->endpoint.path;
}

size_t server_clients(const struct server *server)
{
	return server->clients.open;
}

struct events *server_events(struct server *server)
{
	return server->events;
}
