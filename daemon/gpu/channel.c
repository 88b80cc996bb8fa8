#include "gpu/channel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/vec.h"
#include "gpu/devices.h"
#include "gpu/fault.h"
#include "gpu/link.h"
#include "protocol/limits.h"

struct channel {
	uv_pipe_t listener_pipe;
	uv_loop_t *loop;
	const struct log *log;
	char token[CHANNEL_TOKEN_BYTES];
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	VEC(struct link *) links;
	const struct gpu_listener *listener; /* NULL: nobody listens */
	void *context;
	const struct gpu_server *server; /* NULL: nobody answers */
	void *server_context;
	char device[GPU_PICK_WISH_BYTES]; /* that the recording started last is for; "": each */
	struct link *asker;               /* whose wish is being answered; NULL */
	uint64_t asked;                   /* its number */
	struct gpu_wire_line start_line;  /* of the recording that was started last */
	bool is_started;                  /* and has not ended; */
	bool is_answer;                   /* to the recorder's own wish: nobody else gets it */
	struct link *recorder;            /* this one was told of it; NULL: none yet */
	bool has_begun;                   /* it said that it records */
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

/* It has a device that the recording is, or may be, for. */
static bool has_wished(const struct channel *channel, const struct link_facts *facts)
{
	return facts->devices > 0 &&
		   (channel->device[0] == '\0' || devices_pick(facts->made, facts->made_count,
											  channel->device, NULL) != GPU_PICK_NONE);
}

/* 2: it works with the wished GPU; 1: it may come to that; 0: it works with others. */
static int rank(const struct channel *channel, const struct link *link)
{
	const struct link_facts *facts = link_facts(link);
	return has_wished(channel, facts) ? 2 : facts->devices == 0;
}

/* Who works most with the GPU, or will; NULL: nobody is there. */
static struct link *choose(const struct channel *channel)
{
	struct link *best = NULL;
	for (size_t i = 0; i < channel->links.len; i++) {
		struct link *link = channel->links.items[i];
		if (link_facts(link)->is_greeted &&
			(best == NULL || rank(channel, link) > rank(channel, best) ||
				(rank(channel, link) == rank(channel, best) &&
					link_facts(link)->frame > link_facts(best)->frame))) {
			best = link;
		}
	}
	return best;
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
	const struct link *link = channel->recorder != NULL ? channel->recorder : choose(channel);
	if (link != NULL) {
		take_facts(&channel->status, link_facts(link));
	}
}

static bool send_word(struct link *link, const char *word)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, word);
	return gpu_wire_end(&line) && link_send(link, &line);
}

/* Gives the recording to whoever should have it now. */
static void appoint(struct channel *channel)
{
	struct link *link = choose(channel);
	if (!channel->is_started || channel->has_begun || channel->is_answer || link == NULL ||
		link == channel->recorder) {
		return;
	}
	if (channel->recorder != NULL) {
		send_word(channel->recorder, "stop");
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
		send_word(link, "status"); /* it waits for a word */
	}
	remember(channel);
}

static void on_device(void *context, struct link *link)
{
	struct channel *channel = context;
	const struct link_facts *facts = link_facts(link);
	channel->status.devices++;
	devices_add_name(channel->status.made, sizeof(channel->status.made), &facts->device);
	channel->status.has_wished = channel->status.has_wished || has_wished(channel, facts);
	if (channel->recorder == NULL || rank(channel, channel->recorder) < 2) {
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

static void refuse_asker(struct link *link, uint64_t number, const struct error *err)
{
	struct gpu_wire_line line;
	char text[GPU_WIRE_TEXT_BYTES];
	snprintf(text, sizeof(text), "%.500s (%.250s)", err->message,
		err->hint[0] != '\0' ? err->hint : error_code_hint(err->code));
	gpu_wire_begin(&line, "refused");
	gpu_wire_number(&line, "asked", number);
	gpu_wire_text(&line, "code", error_code_name(err->code));
	gpu_wire_text(&line, "text", text);
	if (gpu_wire_end(&line)) {
		link_send(link, &line);
	}
}

static void on_ask(void *context, struct link *link, uint64_t number, const char *label)
{
	struct channel *channel = context;
	struct error err = {0};
	if (channel->server == NULL) {
		error_set(&err, ERROR_BUILD_NOT_RUNNING, "the build of the program has ended");
		refuse_asker(link, number, &err);
		return;
	}
	channel->asker = link;
	channel->asked = number;
	bool is_granted = channel->server->asked(channel->server_context, label, &err);
	channel->asker = NULL;
	if (!is_granted) {
		refuse_asker(link, number, &err);
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
	if (channel->is_closed && channel->links.len == 0 && channel->listener_pipe.data == NULL) {
		VEC_FINISH(&channel->links);
		free(channel);
	}
}

static void remove_link(struct channel *channel, const struct link *link)
{
	size_t i = 0;
	while (channel->links.items[i] != link) {
		i++;
	}
	channel->links.items[i] = channel->links.items[--channel->links.len];
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
	remove_link(channel, link);
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
	bool has_room =
		channel->links.len < LIMIT_GPU_LINKS && VEC_RESERVE(&channel->links, LIMIT_GPU_LINKS);
	struct link *link = status == 0 ? link_accept(stream, &options) : NULL;
	if (link != NULL && has_room) {
		channel->links.items[channel->links.len++] = link;
	} else if (link != NULL) {
		log_write(channel->log, LOG_WARN, "gpu",
			"process %d is not listened to: %d processes of its program are already",
			(int)link_facts(link)->pid, LIMIT_GPU_LINKS);
		link_detach(link);
		link_close(link);
	}
}

static bool make_token(char token[CHANNEL_TOKEN_BYTES], struct error *err)
{
	unsigned char bytes[(CHANNEL_TOKEN_BYTES - 1) / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		return error_errno(err, "getrandom");
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	}
	return true;
}

/* -1: err. The mode is the descriptor's before the name is there. */
static int make_socket(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path)) {
		error_set(err, ERROR_IO, "the socket's path %s has %zu bytes, at most %zu can be had", path,
			strlen(path), sizeof(address.sun_path) - 1);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || fchmod(fd, 0600) != 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		error_errno(err, "bind a socket to %s", path);
		if (fd >= 0) {
			close(fd);
		}
		return -1;
	}
	return fd;
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
	for (size_t i = 0; i < channel->links.len; i++) {
		link_close(channel->links.items[i]);
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
	int fd = make_token(channel->token, err) ? make_socket(path, err) : -1;
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

/* The line of a start; without frames it is manual: from the next boundary until stop. False: it does not fit. */
static bool describe(
	const struct channel *channel, struct gpu_wire_line *line, const struct gpu_range *range)
{
	gpu_wire_begin(line, "start");
	bool has_frames = range->has_frames || range->next > 0;
	enum gpu_boundary by = has_frames ? range->by : GPU_BY_MANUAL;
	gpu_wire_text(line, "by", gpu_boundary_name(by));
	if (by != range->by && range->by != GPU_BY_AUTO) {
		gpu_wire_text(line, "counts", gpu_boundary_name(range->by));
	}
	if (range->by == GPU_BY_LABEL) {
		gpu_wire_text(line, "label", range->label);
	}
	if (range->has_frames) {
		gpu_wire_number(line, "first", range->first);
		gpu_wire_number(line, "last", range->last);
	} else if (range->next > 0) {
		gpu_wire_number(line, "next", range->next);
	}
	if (range->device[0] != '\0') {
		gpu_wire_text(line, "device", range->device);
	}
	if (channel->asker != NULL) {
		gpu_wire_number(line, "asked", channel->asked);
	}
	gpu_wire_text(line, "template", range->path_template);
	return strlen(range->path_template) < GPU_WIRE_PATH_BYTES && gpu_wire_end(line);
}

/* Whether one has a device that is wished for, and whether one may still make it. False: err; one of its devices may be meant as well as another. */
static bool look_for_device(struct channel *channel, bool *is_hopeless, struct error *err)
{
	size_t working = 0, others = 0;
	channel->status.has_wished = false;
	channel->status.made[0] = '\0';
	for (size_t i = 0; i < channel->links.len; i++) {
		const struct link_facts *facts = link_facts(channel->links.items[i]);
		bool has_device = has_wished(channel, facts);
		channel->status.has_wished = channel->status.has_wished || has_device;
		for (size_t k = 0; k < facts->made_count; k++) {
			devices_add_name(channel->status.made, sizeof(channel->status.made), &facts->made[k]);
		}
		working += facts->devices > 0;
		others += facts->is_greeted && facts->devices == 0;
		if (has_device && channel->device[0] != '\0' &&
			!devices_check(
				facts->made, facts->made_count, channel->device, ERROR_BAD_PARAMS, err)) {
			return false;
		}
	}
	*is_hopeless = working > 0 && others == 0 && !channel->status.has_wished;
	return true;
}

static bool choose_device(struct channel *channel, const struct gpu_range *range, struct error *err)
{
	bool is_hopeless = false;
	memcpy(channel->device, range->device, sizeof(channel->device));
	if (!look_for_device(channel, &is_hopeless, err)) {
		return false;
	}
	if (!is_hopeless) {
		return true;
	}
	error_set(err, ERROR_GPU_NO_CALLS, "the program does not use a GPU %.80s: it uses %s",
		range->device, channel->status.made);
	error_detail(err, "device_not_used");
	return error_hint(err, "name one that it uses, or launch it with that device in gpu");
}

bool channel_start(struct channel *channel, const struct gpu_range *range, struct error *err)
{
	struct gpu_wire_line line;
	if (channel->is_started) {
		error_set(err, ERROR_CAPTURE_BUSY, "the program is being recorded already");
		return error_detail(err, "gpu_busy");
	}
	if (!describe(channel, &line, range)) {
		error_set(err, ERROR_BAD_PARAMS,
			"the path of the document, %s, is too long to be told to the program",
			range->path_template);
		return error_hint(err, "choose a shorter output_dir, or one without unusual characters");
	}
	if (!choose_device(channel, range, err)) {
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
	return send_word(channel->recorder, "stop");
}

void channel_status(const struct channel *channel, struct gpu_status *status)
{
	*status = channel->status;
	status->connected = channel->links.len;
}
