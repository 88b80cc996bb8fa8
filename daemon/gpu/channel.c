#include "gpu/channel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu/candidates.h"
#include "gpu/devices.h"
#include "gpu/fault.h"
#include "gpu/link.h"
#include "gpu/orders.h"
#include "gpu/rendezvous.h"
#include "protocol/limits.h"

struct channel {
	uv_pipe_t listener_pipe;
	uv_loop_t *loop;
	const struct log *log;
	char token[RENDEZVOUS_TOKEN_BYTES];
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct candidates candidates;
	const struct gpu_listener *listener; /* NULL: nobody listens */
	void *context;
	const struct gpu_server *server; /* NULL: nobody answers */
	void *server_context;
	struct link *asker;              /* whose wish is being answered; NULL */
	uint64_t asked;                  /* its number */
	struct gpu_wire_line start_line; /* of the recording that was started last */
	bool is_started;                 /* and has not ended; */
	bool is_answer;                  /* to the recorder's own wish: nobody else gets it */
	struct link *recorder;           /* this one was told of it; NULL: none yet */
	bool has_begun;                  /* it said that it records */
	bool is_closed;
	struct gpu_status status; /* the counts, and what the recorder last was */
};

const char *channel_token(const struct channel *channel)
{
	return channel->token;
}

void channel_listen(struct channel *channel, const struct gpu_listener *listener, void *context)
{
	channel->listener = listener;
	channel->context = context;
}

void channel_serve(struct channel *channel, const struct gpu_server *server, void *context)
{
	channel->server = server;
	channel->server_context = context;
}

static void take_facts(struct gpu_status *status, const struct link_facts *facts)
{
	status->has_frame = facts->has_frame;
	status->frame = facts->frame;
	status->pid = facts->pid;
	status->device = facts->device;
	memcpy(status->exe, facts->exe, sizeof(status->exe));
	memcpy(status->version, facts->version, sizeof(status->version));
	memcpy(status->frame_by, facts->frame_by, sizeof(status->frame_by));
}

/* Of the one that records or would; what is known of the last stays when there is none. */
static void remember(struct channel *channel)
{
	const struct link *link =
		channel->recorder != NULL ? channel->recorder : candidates_choose(&channel->candidates);
	if (link != NULL) {
		take_facts(&channel->status, link_facts(link));
	}
}

/* Gives the recording to whoever should have it now. */
static void appoint(struct channel *channel)
{
	struct link *link = candidates_choose(&channel->candidates);
	if (!channel->is_started || channel->has_begun || channel->is_answer || link == NULL ||
		link == channel->recorder) {
		return;
	}
	if (channel->recorder != NULL) {
		orders_send_word(channel->recorder, "stop");
	}
	channel->recorder = link;
	link_send(link, &channel->start_line);
}

static void ended(struct channel *channel)
{
	remember(channel);
	channel->is_started = channel->has_begun = channel->is_answer = false;
	channel->recorder = NULL;
}

static void on_hello(void *context, struct link *link)
{
	struct channel *channel = context;
	channel->status.processes += !link_facts(link)->is_again;
	channel->status.has_closed = channel->status.has_closed || link_facts(link)->is_again;
	appoint(channel);
	if (channel->recorder != link) {
		orders_send_word(link, "status"); /* it waits for a word */
	}
	remember(channel);
}

static void on_device(void *context, struct link *link)
{
	struct channel *channel = context;
	const struct link_facts *facts = link_facts(link);
	channel->status.devices++;
	devices_add_name(channel->status.made, sizeof(channel->status.made), &facts->device);
	channel->status.has_wished =
		channel->status.has_wished || candidates_has_wished(&channel->candidates, link);
	if (channel->recorder == NULL || candidates_rank(&channel->candidates, channel->recorder) < 2) {
		appoint(channel);
	}
	remember(channel);
}

static void on_frame(void *context, struct link *link)
{
	struct channel *channel = context;
	remember(channel);
	if (link == channel->recorder && channel->listener != NULL) {
		channel->listener->frame(channel->context, link_facts(link)->frame);
	}
}

static void on_capturing(
	void *context, struct link *link, uint64_t frame, uint64_t wall_ns, uint64_t mono_ns)
{
	struct channel *channel = context;
	if (link != channel->recorder || channel->has_begun) {
		return;
	}
	channel->has_begun = true;
	channel->status.has_begun = true;
	channel->status.waits.text[0] = '\0';
	remember(channel);
	if (channel->listener != NULL) {
		channel->listener->capturing(channel->context, frame, wall_ns, mono_ns);
	}
}

static void on_shader(void *context, struct link *link, const struct gpu_shader *shader)
{
	struct channel *channel = context;
	if (link == channel->recorder && channel->has_begun && channel->listener != NULL) {
		channel->listener->shader(channel->context, shader);
	}
}

static void on_shaders_left_out(void *context, struct link *link, uint64_t count)
{
	struct channel *channel = context;
	if (link == channel->recorder && channel->has_begun && channel->listener != NULL) {
		channel->listener->shaders_left_out(channel->context, count);
	}
}

static void on_document(void *context, struct link *link, const struct gpu_document *document)
{
	struct channel *channel = context;
	if (link != channel->recorder) {
		return;
	}
	ended(channel);
	if (channel->listener != NULL) {
		channel->listener->document(channel->context, document);
	}
}

static void on_waits(
	void *context, struct link *link, bool is_end, uint64_t mono_ns, const char *text)
{
	struct channel *channel = context;
	struct gpu_waits *waits = &channel->status.waits;
	if (link == channel->recorder) {
		*waits = (struct gpu_waits){.since_ns = mono_ns, .is_end = is_end};
		snprintf(waits->text, sizeof(waits->text), "%s", text);
	}
}

static void on_fault(void *context, struct link *link, const char *code, const char *text)
{
	struct channel *channel = context;
	struct error err = {0};
	if (link != channel->recorder) {
		return; /* one that was told to leave it to another */
	}
	fault_set(&err, code, text);
	ended(channel);
	if (channel->listener != NULL) {
		channel->listener->fault(channel->context, &err);
	}
}

static void on_ask(void *context, struct link *link, uint64_t number, const char *label)
{
	struct channel *channel = context;
	struct error err = {0};
	if (channel->server == NULL) {
		error_set(&err, ERROR_BUILD_NOT_RUNNING, "the build of the program has ended");
		orders_send_refusal(link, number, &err);
		return;
	}
	channel->asker = link;
	channel->asked = number;
	bool is_granted = channel->server->asked(channel->server_context, label, &err);
	channel->asker = NULL;
	if (!is_granted) {
		orders_send_refusal(link, number, &err);
	}
}

/* It may make another device, or end; what it records it has told before. */
static void on_bye(void *context, struct link *link)
{
	struct channel *channel = context;
	(void)link;
	remember(channel);
}

static void maybe_free(struct channel *channel)
{
	if (channel->is_closed && channel->candidates.count == 0 &&
		channel->listener_pipe.data == NULL) {
		free(channel);
	}
}

static void on_closed(void *context, struct link *link)
{
	struct channel *channel = context;
	bool was_recorder = link == channel->recorder;
	bool is_lost = channel->has_begun || channel->is_answer;
	if (was_recorder) {
		remember(channel);
		channel->recorder = NULL;
	}
	candidates_remove(&channel->candidates, link);
	if (channel->is_closed) {
		maybe_free(channel);
	} else if (was_recorder && is_lost) {
		channel->is_started = channel->has_begun = channel->is_answer = false;
		if (channel->listener != NULL) {
			channel->listener->gone(channel->context);
		}
	} else if (was_recorder) {
		appoint(channel);
	}
}

static const struct link_ops link_ops = {
	.hello = on_hello,
	.device = on_device,
	.frame = on_frame,
	.capturing = on_capturing,
	.shader = on_shader,
	.shaders_left_out = on_shaders_left_out,
	.document = on_document,
	.waits = on_waits,
	.fault = on_fault,
	.ask = on_ask,
	.bye = on_bye,
	.closed = on_closed,
};

static void on_connection(uv_stream_t *stream, int status)
{
	struct channel *channel = stream->data;
	struct link_options options = {
		.loop = channel->loop,
		.log = channel->log,
		.token = channel->token,
		.ops = &link_ops,
		.context = channel,
	};
	struct link *link = status == 0 ? link_accept(stream, &options) : NULL;
	if (link != NULL && !candidates_add(&channel->candidates, link)) {
		log_write(channel->log, LOG_WARN, "gpu",
			"process %d is not listened to: %d processes of its program are already",
			(int)link_facts(link)->pid, LIMIT_GPU_LINKS);
		link_detach(link);
		link_close(link);
	}
}

static void on_listener_closed(uv_handle_t *handle)
{
	struct channel *channel = handle->data;
	handle->data = NULL;
	maybe_free(channel);
}

void channel_close(struct channel *channel)
{
	if (channel == NULL) {
		return;
	}
	channel->is_closed = true;
	channel->listener = NULL;
	unlink(channel->path);
	for (size_t i = 0; i < channel->candidates.count; i++) {
		link_close(channel->candidates.links[i]);
	}
	uv_close((uv_handle_t *)&channel->listener_pipe, on_listener_closed);
}

struct channel *channel_open(
	uv_loop_t *loop, const struct log *log, const char *path, struct error *err)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	if (channel == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the socket of an armed program");
		return NULL;
	}
	channel->loop = loop;
	channel->log = log;
	int fd = rendezvous_token(channel->token, err) ? rendezvous_socket(path, err) : -1;
	if (fd < 0) {
		free(channel);
		return NULL;
	}
	memcpy(channel->path, path, strlen(path) + 1);
	uv_pipe_init(loop, &channel->listener_pipe, 0);
	channel->listener_pipe.data = channel;
	int status = uv_pipe_open(&channel->listener_pipe, fd);
	if (status == 0) {
		status = uv_listen((uv_stream_t *)&channel->listener_pipe, LIMIT_GPU_LINKS, on_connection);
	} else {
		close(fd);
	}
	if (status != 0) {
		error_errno_as(err, ERROR_IO, status, "listen on %s", path);
		channel_close(channel);
		return NULL;
	}
	return channel;
}

bool channel_start(struct channel *channel, const struct gpu_range *range, struct error *err)
{
	struct gpu_wire_line line;
	if (channel->is_started) {
		error_set(err, ERROR_CAPTURE_BUSY, "the program is being recorded already");
		return error_detail(err, "gpu_busy");
	}
	if (!orders_make_start(&line, range, channel->asker != NULL ? &channel->asked : NULL)) {
		error_set(err, ERROR_BAD_PARAMS,
			"the path of the document, %s, is too long to be told to the program",
			range->path_template);
		return error_hint(err, "choose a shorter output_dir, or one without unusual characters");
	}
	struct gpu_status *now = &channel->status;
	if (!candidates_wish(&channel->candidates, range->device, &now->has_wished, now->made,
			sizeof(now->made), err)) {
		return false;
	}
	channel->start_line = line;
	channel->is_started = true;
	channel->has_begun = channel->status.has_begun = false;
	channel->status.waits.text[0] = '\0';
	channel->status.has_closed = false;
	if (channel->asker != NULL) {
		channel->is_answer = true;
		channel->recorder = channel->asker;
		link_send(channel->recorder, &channel->start_line);
	} else {
		appoint(channel);
	}
	return true;
}

bool channel_stop(struct channel *channel)
{
	if (!channel->is_started) {
		return false;
	}
	if (channel->recorder == NULL) {
		channel->is_started = false;
		return false;
	}
	return orders_send_word(channel->recorder, "stop");
}

void channel_status(const struct channel *channel, struct gpu_status *status)
{
	*status = channel->status;
	status->connected = channel->candidates.count;
}
