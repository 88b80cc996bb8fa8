#include "gpu/link.h"

#include <stdlib.h>

#include "gpu/words.h"
#include "protocol/gpu_wire.h"
#include "protocol/peer.h"

#define RATE_MS 1000

struct link {
	uv_pipe_t pipe;
	uv_timer_t timer; /* until the hello */
	int handles;
	struct link_options options;
	struct link_facts facts;
	bool is_closing;
	struct gpu_wire_input input;
	uint64_t window_ms, window_bytes; /* what came since when, for the limit of bytes a second */
};

const struct link_facts *link_facts(const struct link *link)
{
	return &link->facts;
}

static void handle_closed(uv_handle_t *handle)
{
	struct link *link = handle->data;
	if (--link->handles > 0) {
		return;
	}
	if (link->options.ops != NULL) {
		link->options.ops->closed(link->options.context, link);
	}
	free(link);
}

void link_close(struct link *link)
{
	if (!link->is_closing) {
		link->is_closing = true;
		uv_close((uv_handle_t *)&link->pipe, handle_closed);
		uv_close((uv_handle_t *)&link->timer, handle_closed);
	}
}

void link_detach(struct link *link)
{
	link->options.ops = NULL;
}

static void refuse(struct link *link, const char *why)
{
	if (!link->is_closing) {
		log_write(link->options.log, LOG_WARN, "gpu", "process %d is no longer listened to: %s",
			(int)link->facts.pid, why);
		link_close(link);
	}
}

static void take_message(struct link *link, const struct gpu_wire_message *message)
{
	struct words_hearer hearer = {.link = link, .facts = &link->facts, .options = &link->options};
	const char *why = words_take(&hearer, message);
	if (why != NULL) {
		refuse(link, why);
	} else {
		uv_timer_stop(&link->timer); /* it has said hello by now */
	}
}

static bool is_listened_to(const struct link *link)
{
	return !link->is_closing && link->options.ops != NULL;
}

static void take_lines(struct link *link)
{
	struct gpu_wire_message message;
	enum gpu_wire_found found = GPU_WIRE_MESSAGE;
	while (is_listened_to(link) && found == GPU_WIRE_MESSAGE) {
		found = gpu_wire_next(&link->input, &message);
		if (found == GPU_WIRE_MESSAGE) {
			take_message(link, &message);
		} else if (found == GPU_WIRE_GARBLED) {
			refuse(link, "it said what is no line of the wire, or a line that is too long");
		}
	}
}

static bool is_too_fast(struct link *link, size_t bytes)
{
	uint64_t now_ms = uv_now(link->options.loop);
	if (now_ms - link->window_ms >= RATE_MS) {
		link->window_ms = now_ms;
		link->window_bytes = 0;
	}
	link->window_bytes += bytes;
	return link->window_bytes > LIMIT_GPU_BYTES_PER_S;
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct link *link = handle->data;
	size_t room = 0;
	(void)suggested;
	char *at = gpu_wire_room(&link->input, &room);
	*buffer = uv_buf_init(at, (unsigned)room);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
	struct link *link = stream->data;
	(void)buffer;
	if (len < 0) {
		link_close(link);
	} else if (len > 0 && is_too_fast(link, (size_t)len)) {
		refuse(link, "it says more than 1 MiB a second");
	} else if (len > 0) {
		gpu_wire_filled(&link->input, (size_t)len);
		take_lines(link);
	}
}

static void on_silence(uv_timer_t *timer)
{
	refuse(timer->data, "it did not say hello");
}

bool link_send(struct link *link, const struct gpu_wire_line *line)
{
	if (link->is_closing) {
		return false;
	}
	/* It is a handful of short lines in a program's life: one that does not fit into the socket was not read for long. */
	uv_buf_t buffer = uv_buf_init((char *)line->text, (unsigned)line->len);
	if (uv_try_write((uv_stream_t *)&link->pipe, &buffer, 1) != (int)line->len) {
		refuse(link, "it does not read what it is told");
		return false;
	}
	return true;
}

static bool is_let_in(struct link *link)
{
	struct peer peer = {0};
	struct error err = {0};
	uv_os_fd_t fd = -1;
	if (uv_fileno((uv_handle_t *)&link->pipe, &fd) != 0 || !peer_read(fd, &peer, &err)) {
		return false;
	}
	link->facts.pid = peer.pid;
	if (!peer_is_trusted(&peer, &err)) {
		refuse(link, err.message);
		return false;
	}
	return true;
}

struct link *link_accept(uv_stream_t *listener, const struct link_options *options)
{
	struct link *link = calloc(1, sizeof(*link));
	if (link == NULL) {
		return NULL;
	}
	link->options = *options;
	link->handles = 2;
	uv_pipe_init(options->loop, &link->pipe, 0);
	uv_timer_init(options->loop, &link->timer);
	link->pipe.data = link->timer.data = link;
	link->window_ms = uv_now(options->loop);
	if (uv_accept(listener, (uv_stream_t *)&link->pipe) != 0 || !is_let_in(link) ||
		uv_read_start((uv_stream_t *)&link->pipe, on_allocate, on_read) != 0) {
		link_detach(link);
		link_close(link);
		return NULL;
	}
	uv_timer_start(&link->timer, on_silence, LIMIT_GPU_HELLO_MS, 0);
	return link;
}
