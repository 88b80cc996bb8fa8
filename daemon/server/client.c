#include "server/client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/framing.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/peer.h"
#include "server/line.h"
#include "server/queue.h"

#define READ_BYTES  ((size_t)16 * 1024)
#define CLIENTS_MAX ((size_t)4 * LIMIT_CLIENTS) /* with those that have vanished unnoticed */

struct client {
	struct clients *clients; /* borrowed */
	struct client *prev, *next;
	struct peer peer;
	uv_pipe_t pipe;
	uv_timer_t
		timer; /* runs while a write waits for the reader, or for one turn of the loop to settle */
	uv_poll_t hangup; /* on a copy of the descriptor; in use while half_closed */
	int hangup_fd;
	unsigned handles; /* not closed yet */
	struct framing framing;
	struct queue queue;
	uv_write_t write;
	struct queue_line *writing; /* the line that write sends; owned */
	size_t unsent, unread;      /* of it, and in the socket, when the timer last looked */
	struct requests requests;
	size_t subscriptions;
	uint64_t last_seq; /* of the event that came last, to send each once */
	bool is_open;      /* counted in clients->open */
	bool half_closed;  /* it sends no more, but may read */
	bool mute;         /* nothing can be sent to it; reading goes on to its end */
	bool paused;       /* it does not read its replies: no more requests are read either */
	bool draining;
	bool closing;
};

static void pump(struct client *client);

/* The end, in this order: its requests are told, its subscriptions go, the user of the server hears, the memory goes. */
static void end(struct client *client)
{
	struct clients *clients = client->clients;
	requests_gone(&client->requests);
	events_client_gone(clients->events, client);
	if (client->is_open && clients->options->client_gone != NULL) {
		clients->options->client_gone(clients->options->context, client);
	}
	if (client->prev != NULL) {
		client->prev->next = client->next;
	} else {
		clients->first = client->next;
	}
	if (client->next != NULL) {
		client->next->prev = client->prev;
	}
	framing_finish(&client->framing);
	free(client);
	if (clients->first == NULL && clients->emptied != NULL) {
		clients->emptied(clients->emptied_context);
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;
	if (handle == (uv_handle_t *)&client->hangup) {
		close(client->hangup_fd);
	}
	if (--client->handles == 0) {
		end(client);
	}
}

void client_close(struct client *client)
{
	if (client->closing) {
		return;
	}
	client->closing = true;
	client->clients->open -= client->is_open ? 1 : 0;
	queue_finish(&client->queue);
	if (client->half_closed) {
		uv_close((uv_handle_t *)&client->hangup, on_closed);
	}
	uv_close((uv_handle_t *)&client->timer, on_closed);
	uv_close((uv_handle_t *)&client->pipe, on_closed);
}

static void disconnect(struct client *client, const char *why)
{
	log_write(client->clients->log, LOG_WARN, "server", "disconnected the client with pid %d: %s",
		(int)client->peer.pid, why);
	client_close(client);
}

static void on_settled(uv_timer_t *timer);

/* It has shut its side or is gone, which reading (or the watch for hang-ups) will tell after what it sent before. */
static void fall_mute(struct client *client)
{
	client->mute = true;
	queue_finish(&client->queue);
	uv_timer_stop(&client->timer);
	client_settle(client);
	if (client->paused && !client->closing) {
		uv_timer_start(&client->timer, on_settled, 0, 0);
	}
}

/* Nothing more will be said to it, nor heard from it. */
static bool is_done(const struct client *client)
{
	bool is_served =
		client->half_closed && client->requests.count == 0 && client->subscriptions == 0;
	return client->writing == NULL && queue_is_empty(&client->queue) &&
		   (client->draining || is_served);
}

static void resume(struct client *client);

static void on_settled(uv_timer_t *timer)
{
	struct client *client = timer->data;
	resume(client);
	if (!client->closing && is_done(client)) {
		client_close(client);
	}
}

void client_settle(struct client *client)
{
	/* In the next turn of the loop: whoever has just answered a request may subscribe its client now. */
	if (!client->closing && is_done(client)) {
		uv_timer_start(&client->timer, on_settled, 0, 0);
	}
}

static void watch_reader(struct client *client);

static void on_stalled(uv_timer_t *timer)
{
	struct client *client = timer->data;
	size_t unsent = client->unsent;
	size_t unread = client->unread;
	watch_reader(client);
	if (client->unsent >= unsent && client->unread >= unread) {
		disconnect(client, "it has not read for 30 s");
	}
}

static int descriptor(const struct client *client)
{
	int fd = -1;
	uv_fileno((const uv_handle_t *)&client->pipe, &fd);
	return fd;
}

/* The socket becomes writable only when most of it is free: a slow reader may have read without our having sent. */
static void watch_reader(struct client *client)
{
	client->unsent = uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe);
	client->unread = peer_unread(descriptor(client));
	uv_timer_start(&client->timer, on_stalled, LIMIT_STALL_MS, 0);
}

static void on_written(uv_write_t *write, int status)
{
	struct client *client = write->data;
	queue_line_destroy(client->writing);
	client->writing = NULL;
	if (client->closing) {
		return;
	}
	uv_timer_stop(&client->timer);
	if (status != 0) {
		fall_mute(client);
	} else {
		pump(client);
		resume(client);
	}
}

/* The socket is full: the rest of the line goes when the reader reads. */
static void write_rest(struct client *client, struct queue_line *line, size_t sent)
{
	uv_buf_t rest = uv_buf_init(line->text + sent, (unsigned)(line->len - sent));
	client->write.data = client;
	if (uv_write(&client->write, (uv_stream_t *)&client->pipe, &rest, 1, on_written) != 0) {
		queue_line_destroy(line);
		fall_mute(client);
		return;
	}
	client->writing = line;
	watch_reader(client);
}

static void write_line(struct client *client, struct queue_line *line)
{
	uv_buf_t whole = uv_buf_init(line->text, (unsigned)line->len);
	int sent = uv_try_write((uv_stream_t *)&client->pipe, &whole, 1);
	if (sent >= 0 && (size_t)sent == line->len) {
		queue_line_destroy(line);
	} else if (sent >= 0 || sent == UV_EAGAIN) {
		write_rest(client, line, sent > 0 ? (size_t)sent : 0);
	} else {
		queue_line_destroy(line);
		fall_mute(client);
	}
}

/* Queues a line (taken). */
static void put(struct client *client, enum events_class class, const char *name, const char *key,
	char *text, size_t len)
{
	if (client->mute || client->closing) {
		free(text);
		return;
	}
	text = client->framing.has_headers ? line_with_headers(text, &len) : text;
	if (text == NULL) {
		disconnect(client, "memory is out");
		return;
	}
	if (queue_put(&client->queue, class, name, key, text, len) == QUEUE_FULL) {
		disconnect(client, "it does not read, and what must not be lost fills its queue");
	}
}

static void tell_dropped(struct client *client)
{
	json_t *counts = queue_take_dropped(&client->queue);
	if (counts == NULL) {
		return;
	}
	json_t *event = events_dropped(client->clients->events, counts);
	size_t len = 0;
	char *text = event != NULL ? message_dump(event, &len) : NULL;
	json_decref(event);
	if (text == NULL) {
		disconnect(client, "memory is out");
		return;
	}
	put(client, EVENTS_LOSSLESS, NULL, NULL, text, len);
}

/* Sends as much as the socket takes. Calls nobody back. */
static void pump(struct client *client)
{
	while (!client->closing && client->writing == NULL) {
		tell_dropped(client);
		struct queue_line *line = queue_take(&client->queue);
		if (line == NULL) {
			break;
		}
		write_line(client, line);
	}
	client_settle(client);
}

bool client_send(struct client *client, const json_t *message)
{
	size_t len = 0;
	char *text = message_dump(message, &len);
	if (text == NULL) {
		disconnect(client, "memory is out");
		return true;
	}
	if (len > LIMIT_LINE_BYTES) {
		free(text);
		return false;
	}
	put(client, EVENTS_LOSSLESS, NULL, NULL, text, len);
	pump(client);
	return true;
}

void client_fail(struct client *client, const json_t *id, const struct error *err)
{
	json_t *reply = json_object();
	json_object_set_new(reply, "jsonrpc", json_string("2.0"));
	json_object_set_new(reply, "id", id != NULL ? json_copy((json_t *)id) : json_null());
	json_object_set_new(reply, "error", error_to_json(err));
	/* An error's fields are bounded well below a line. */
	client_send(client, reply);
	json_decref(reply);
}

void client_send_event(struct client *client, uint64_t seq, enum events_class class,
	const char *name, const char *key, const char *text, size_t len)
{
	if (client->last_seq == seq || client->mute || client->closing) {
		return;
	}
	client->last_seq = seq;
	bool has_slot = class == EVENTS_LATEST;
	char *copy = line_copy_event(text, &len, has_slot ? queue_slot(&client->queue, key) : NULL);
	if (copy == NULL) {
		disconnect(client, "memory is out");
		return;
	}
	put(client, class, name, key, copy, len);
	pump(client);
}

void client_count_subscriptions(struct client *client, int change)
{
	client->subscriptions += (size_t)change;
	client_settle(client);
}

void client_drain(struct client *client)
{
	if (!client->closing) {
		client->draining = true;
		uv_read_stop((uv_stream_t *)&client->pipe);
		client_settle(client);
	}
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	client_close(poll->data);
}

/*
 * It has ended its stream. Fully closed: gone. Only its writing side: it stays for what it waits for, and epoll
 * tells when the rest goes, too: libuv reports a hang-up to whoever asks for priority data, which Unix sockets never
 * have. A copy of the descriptor, because libuv watches each number once.
 */
static void end_of_stream(struct client *client)
{
	struct pollfd now = {.fd = descriptor(client)};
	if (poll(&now, 1, 0) < 0 || (now.revents & (POLLHUP | POLLERR)) != 0) {
		client_close(client);
		return;
	}
	client->hangup_fd = fcntl(now.fd, F_DUPFD_CLOEXEC, 0);
	if (client->hangup_fd < 0) {
		disconnect(client, "its writing side is shut and no descriptor is left to watch the other");
		return;
	}
	if (uv_poll_init(client->clients->loop, &client->hangup, client->hangup_fd) != 0) {
		close(client->hangup_fd);
		disconnect(client, "its writing side is shut and the other cannot be watched");
		return;
	}
	client->half_closed = true;
	client->handles++;
	client->hangup.data = client;
	uv_poll_start(&client->hangup, UV_PRIORITIZED, on_hangup);
	if (framing_pending(&client->framing) > 0) {
		struct error err;
		error_set(&err, ERROR_PARSE, "the stream ended in the middle of a message (%zu bytes)",
			framing_pending(&client->framing));
		error_detail(&err, "unfinished_message");
		client_fail(client, NULL, &err);
	}
	client_settle(client);
}

static void fail_message(struct client *client, enum framing_result result)
{
	struct error err;
	if (result == FRAMING_BROKEN) {
		error_set(
			&err, ERROR_INVALID_REQUEST, "%s: the connection is closed", client->framing.broken);
		error_detail(&err, "broken_framing");
	} else {
		error_set(
			&err, ERROR_INVALID_REQUEST, "a message of more than %d bytes", LIMIT_REQUEST_BYTES);
		error_detail(&err, "message_too_long");
	}
	client_fail(client, NULL, &err);
	if (result == FRAMING_BROKEN) {
		client_drain(client);
	}
}

/* Its replies wait for it already: it is the turn of its own reading. */
static bool must_pause(struct client *client)
{
	if (client->queue.lossless_bytes > LIMIT_QUEUE_PAUSE_BYTES && !client->paused) {
		client->paused = true;
		uv_read_stop((uv_stream_t *)&client->pipe);
	}
	return client->paused;
}

static void read_messages(struct client *client)
{
	while (!client->closing && !client->draining && !must_pause(client)) {
		const char *text = NULL;
		size_t len = 0;
		enum framing_result result = framing_next(&client->framing, &text, &len);
		if (result == FRAMING_MORE) {
			return;
		}
		if (result == FRAMING_MESSAGE) {
			request_receive(client, text, len);
		} else {
			fail_message(client, result);
		}
	}
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
	(void)buffer;
	struct client *client = stream->data;
	if (count > 0) {
		framing_fed(&client->framing, (size_t)count);
		read_messages(client);
	} else if (count == UV_EOF) {
		end_of_stream(client);
	} else if (count < 0) {
		client_close(client);
	}
}

static void on_room_wanted(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	(void)suggested;
	struct client *client = handle->data;
	size_t room = 0;
	char *base = framing_reserve(&client->framing, READ_BYTES, &room);
	/* Without memory libuv reports ENOBUFS, which ends the connection. */
	*buffer = uv_buf_init(base, base != NULL ? (unsigned)room : 0);
}

/* From the loop only: it runs commands. A client that is gone shows that by the end of its stream. */
static void resume(struct client *client)
{
	bool has_room = client->queue.lossless_bytes <= LIMIT_QUEUE_PAUSE_BYTES / 2;
	if (!client->paused || client->closing || client->draining || !has_room) {
		return;
	}
	client->paused = false;
	read_messages(client);
	if (!client->paused && !client->closing && !client->draining &&
		uv_read_start((uv_stream_t *)&client->pipe, on_room_wanted, on_read) != 0) {
		client_close(client);
	}
}

static struct client *create(struct clients *clients)
{
	struct client *client = calloc(1, sizeof(*client));
	if (client == NULL) {
		return NULL;
	}
	client->clients = clients;
	client->hangup_fd = -1;
	framing_init(&client->framing, LIMIT_REQUEST_BYTES);
	uv_pipe_init(clients->loop, &client->pipe, 0);
	uv_timer_init(clients->loop, &client->timer);
	client->pipe.data = client;
	client->timer.data = client;
	client->handles = 2;
	client->next = clients->first;
	if (client->next != NULL) {
		client->next->prev = client;
	}
	clients->first = client;
	return client;
}

/* Those that vanished and are not read to their end yet take nobody's place: many can between two turns of the loop. */
static size_t count_present(const struct clients *clients)
{
	size_t present = 0;
	for (const struct client *client = clients->first; client != NULL; client = client->next) {
		if (client->is_open && !client->closing) {
			struct pollfd now = {.fd = descriptor(client)};
			present += poll(&now, 1, 0) <= 0 || (now.revents & (POLLHUP | POLLERR)) == 0;
		}
	}
	return present;
}

static bool is_full(const struct clients *clients)
{
	return clients->open >= CLIENTS_MAX ||
		   (clients->open >= LIMIT_CLIENTS && count_present(clients) >= LIMIT_CLIENTS);
}

static bool is_let_in(struct client *client, struct error *err)
{
	if (!peer_read(descriptor(client), &client->peer, err) ||
		!peer_is_trusted(&client->peer, err)) {
		return false;
	}
	if (is_full(client->clients)) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "%d clients are connected already", LIMIT_CLIENTS);
		error_detail(err, "clients");
		return error_hint(err, "close another connection first");
	}
	return true;
}

void client_accept(struct clients *clients, uv_stream_t *listener)
{
	struct client *client = create(clients);
	if (client == NULL) {
		log_write(
			clients->log, LOG_ERROR, "server", "memory is out: a connection was not accepted");
		return;
	}
	struct error err;
	if (uv_accept(listener, (uv_stream_t *)&client->pipe) != 0) {
		client_close(client);
	} else if (!is_let_in(client, &err)) {
		log_write(clients->log, LOG_WARN, "server", "refused the client with pid %d: %s",
			(int)client->peer.pid, err.message);
		/* A fresh socket takes one line at once. */
		client_fail(client, NULL, &err);
		client_close(client);
	} else {
		client->is_open = true;
		clients->open++;
		if (uv_read_start((uv_stream_t *)&client->pipe, on_room_wanted, on_read) != 0) {
			client_close(client);
		}
	}
}

void clients_drain(struct clients *clients)
{
	struct error err = {0};
	error_set(&err, ERROR_SHUTTING_DOWN, "profd ends before this is answered");
	for (struct client *client = clients->first; client != NULL; client = client->next) {
		requests_refuse(client, &err);
		client_drain(client);
	}
}

void clients_close(struct clients *clients)
{
	for (struct client *client = clients->first; client != NULL; client = client->next) {
		client_close(client);
	}
}

struct client *client_next(const struct client *client)
{
	return client->next;
}

const struct server_options *client_options(const struct client *client)
{
	return client->clients->options;
}

struct requests *client_requests(struct client *client)
{
	return &client->requests;
}
