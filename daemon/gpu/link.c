#include "gpu/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/gpu_wire.h"
#include "protocol/peer.h"
#include "protocol/sha256.h"

#define RATE_MS  1000
#define HASH_LEN (SHA256_HEX_BYTES - 1)

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

static void copy(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text != NULL ? text : "");
}

static bool is_token(const char *text, const char *token)
{
	unsigned char difference = 0;
	size_t len = strlen(token);
	if (text == NULL || strlen(text) != len) {
		return false;
	}
	for (size_t i = 0; i < len; i++) {
		difference |= (unsigned char)(text[i] ^ token[i]);
	}
	return difference == 0;
}

static bool take_number(
	const struct gpu_wire_message *message, const char *key, uint64_t max, uint64_t *value)
{
	uint64_t number = 0;
	if (!gpu_wire_get_number(message, key, &number) || number > max) {
		return false;
	}
	*value = number;
	return true;
}

static bool is_one_of(const char *text, const char *const *choices)
{
	while (text != NULL && *choices != NULL && strcmp(text, *choices) != 0) {
		choices++;
	}
	return text != NULL && *choices != NULL;
}

static bool take_hello(struct link *link, const struct gpu_wire_message *message)
{
	static const char *const orders[] = {"above", "below", "alone", NULL};
	struct link_facts *facts = &link->facts;
	const char *again = gpu_wire_get(message, "again");
	uint64_t pid, ppid;
	if (!is_token(gpu_wire_get(message, "token"), link->options.token)) {
		refuse(link, "it does not know the token");
		return true;
	}
	if (!is_one_of(gpu_wire_get(message, "order"), orders) ||
		!take_number(message, "pid", INT32_MAX, &pid) ||
		!take_number(message, "ppid", INT32_MAX, &ppid) ||
		(again != NULL && strcmp(again, "closed") != 0)) {
		return false;
	}
	copy(facts->exe, sizeof(facts->exe), gpu_wire_get(message, "exe"));
	copy(facts->version, sizeof(facts->version), gpu_wire_get(message, "renderdoc_api"));
	facts->is_greeted = true;
	facts->is_again = again != NULL;
	uv_timer_stop(&link->timer);
	link->options.ops->hello(link->options.context, link);
	return true;
}

/* NULL: it was not told of. */
static const struct gpu_device *find_made(
	const struct link_facts *facts, const char *name, const char *uuid, uint64_t index)
{
	for (size_t i = 0; i < facts->made_count; i++) {
		const struct gpu_device *made = &facts->made[i];
		if (strcmp(made->name, name) == 0 && strcmp(made->uuid, uuid) == 0 &&
			made->index == index) {
			return made;
		}
	}
	return NULL;
}

static bool take_device(struct link *link, const struct gpu_wire_message *message)
{
	static const char *const types[] = {"cpu", "discrete", "integrated", "virtual", "other", NULL};
	struct gpu_device device = {0};
	const char *uuid = gpu_wire_get(message, "uuid"), *type = gpu_wire_get(message, "type");
	if (gpu_wire_get(message, "name") == NULL || !is_one_of(type, types) || uuid == NULL ||
		strlen(uuid) != 32 || strspn(uuid, "0123456789abcdefABCDEF") != 32 ||
		!take_number(message, "index", UINT32_MAX, &device.index)) {
		return false;
	}
	copy(device.name, sizeof(device.name), gpu_wire_get(message, "name"));
	copy(device.driver, sizeof(device.driver), gpu_wire_get(message, "driver"));
	copy(device.uuid, sizeof(device.uuid), uuid);
	copy(device.type, sizeof(device.type), type);
	link->facts.device = device;
	link->facts.devices++;
	if (find_made(&link->facts, device.name, device.uuid, device.index) == NULL &&
		link->facts.made_count < LIMIT_GPU_DEVICES) {
		link->facts.made[link->facts.made_count++] = device;
	}
	link->options.ops->device(link->options.context, link);
	return true;
}

static bool take_frame(struct link *link, const struct gpu_wire_message *message)
{
	static const char *const boundaries[] = {"submit", "present", "label", NULL};
	uint64_t frame = 0;
	const char *by = gpu_wire_get(message, "by");
	if (!take_number(message, "n", LIMIT_INTEGER, &frame) || !is_one_of(by, boundaries)) {
		return false;
	}
	link->facts.has_frame = true;
	link->facts.frame = frame;
	copy(link->facts.frame_by, sizeof(link->facts.frame_by), by);
	link->options.ops->frame(link->options.context, link);
	return true;
}

/* What is told of the device is for the record alone; a device that was not told of before changes nothing. */
static void take_recorded(struct link *link, const struct gpu_wire_message *message)
{
	uint64_t index = 0;
	const char *name = gpu_wire_get(message, "name"), *uuid = gpu_wire_get(message, "uuid");
	const struct gpu_device *made = NULL;
	if (name != NULL && uuid != NULL && take_number(message, "index", UINT32_MAX, &index)) {
		made = find_made(&link->facts, name, uuid, index);
	}
	if (made != NULL) {
		link->facts.device = *made;
	}
}

static bool take_capturing(struct link *link, const struct gpu_wire_message *message)
{
	uint64_t frame, wall_ns, mono_ns;
	if (!take_number(message, "frame", LIMIT_INTEGER, &frame) ||
		!take_number(message, "wall_ns", INT64_MAX, &wall_ns) ||
		!take_number(message, "mono_ns", INT64_MAX, &mono_ns)) {
		return false;
	}
	take_recorded(link, message);
	link->options.ops->capturing(link->options.context, link, frame, wall_ns, mono_ns);
	return true;
}

static bool take_shader(struct link *link, const struct gpu_wire_message *message)
{
	static const char *const stages[] = {"vertex", "tess_control", "tess_evaluation", "geometry",
		"fragment", "compute", "task", "mesh", "other", NULL};
	struct gpu_shader shader = {.hash = gpu_wire_get(message, "hash"),
		.stage = gpu_wire_get(message, "stage"),
		.entry = gpu_wire_get(message, "entry")};
	if (shader.hash == NULL || strlen(shader.hash) != HASH_LEN ||
		strspn(shader.hash, "0123456789abcdef") != HASH_LEN || !is_one_of(shader.stage, stages) ||
		shader.entry == NULL || strlen(shader.entry) >= GPU_WIRE_ENTRY_BYTES ||
		!take_number(message, "bytes", LIMIT_INTEGER, &shader.bytes)) {
		return false;
	}
	link->options.ops->shader(link->options.context, link, &shader);
	return true;
}

static bool take_shaders(struct link *link, const struct gpu_wire_message *message)
{
	uint64_t left_out;
	if (!take_number(message, "left_out", LIMIT_INTEGER, &left_out)) {
		return false;
	}
	link->options.ops->shaders_left_out(link->options.context, link, left_out);
	return true;
}

static bool take_document(struct link *link, const struct gpu_wire_message *message)
{
	struct gpu_document document = {.path = gpu_wire_get(message, "path")};
	const char *by = gpu_wire_get(message, "by");
	if (document.path == NULL || !take_number(message, "bytes", INT64_MAX, &document.bytes) ||
		!take_number(message, "first", LIMIT_INTEGER, &document.first) ||
		!take_number(message, "last", LIMIT_INTEGER, &document.last) ||
		document.last < document.first ||
		(by != NULL && strcmp(by, "program") != 0 && strcmp(by, "window") != 0)) {
		return false;
	}
	document.by_program = by != NULL && strcmp(by, "program") == 0;
	document.by_window = by != NULL && !document.by_program;
	link->options.ops->document(link->options.context, link, &document);
	return true;
}

static bool take_waits(struct link *link, const struct gpu_wire_message *message)
{
	static const char *const places[] = {"begin", "end", NULL};
	const char *place = gpu_wire_get(message, "for"), *text = gpu_wire_get(message, "text");
	uint64_t mono_ns;
	if (text == NULL || !is_one_of(place, places) ||
		!take_number(message, "mono_ns", INT64_MAX, &mono_ns)) {
		return false;
	}
	link->options.ops->waits(link->options.context, link, strcmp(place, "end") == 0, mono_ns, text);
	return true;
}

static bool take_fault(struct link *link, const struct gpu_wire_message *message)
{
	const char *code = gpu_wire_get(message, "code"), *text = gpu_wire_get(message, "text");
	if (code == NULL) {
		return false;
	}
	link->options.ops->fault(link->options.context, link, code, text != NULL ? text : "");
	return true;
}

static bool take_ask(struct link *link, const struct gpu_wire_message *message)
{
	const char *label = gpu_wire_get(message, "label");
	uint64_t number = 0;
	if (label == NULL || !take_number(message, "n", LIMIT_INTEGER, &number)) {
		return false;
	}
	link->options.ops->ask(link->options.context, link, number, label);
	return true;
}

static bool take_bye(struct link *link, const struct gpu_wire_message *message)
{
	(void)message;
	link->options.ops->bye(link->options.context, link);
	return true;
}

static const struct word {
	const char *word;
	bool (*take)(struct link *link, const struct gpu_wire_message *message);
	const char *const keys[10]; /* those that it may have; NULL-terminated */
} words[] = {
	{"hello", take_hello,
		{"token", "pid", "ppid", "exe", "api", "order", "renderdoc", "renderdoc_api", "again"}},
	{"device", take_device, {"name", "type", "driver", "uuid", "index"}},
	{"frame", take_frame, {"n", "by"}},
	{"capturing", take_capturing, {"frame", "wall_ns", "mono_ns", "name", "uuid", "index"}},
	{"shader", take_shader, {"hash", "bytes", "stage", "entry"}},
	{"shaders", take_shaders, {"left_out"}},
	{"document", take_document, {"path", "bytes", "first", "last", "by"}},
	{"waits", take_waits, {"for", "mono_ns", "text"}},
	{"fault", take_fault, {"code", "text"}},
	{"ask", take_ask, {"n", "label"}},
	{"bye", take_bye, {"why"}},
};

static bool has_known_keys(const struct word *word, const struct gpu_wire_message *message)
{
	for (size_t i = 0; i < message->count; i++) {
		if (!is_one_of(message->pairs[i].key, word->keys)) {
			return false;
		}
	}
	return true;
}

static const struct word *find_word(const char *text)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i].word, text) == 0) {
			return &words[i];
		}
	}
	return NULL;
}

/* The hello is the first, and comes once. */
static void take_message(struct link *link, const struct gpu_wire_message *message)
{
	const struct word *word = find_word(message->word);
	if (word == NULL || !has_known_keys(word, message)) {
		refuse(link, "it said a word or a key that is not of the wire");
	} else if ((word->take == take_hello) == link->facts.is_greeted || !word->take(link, message)) {
		refuse(link, "its line lacks what it must have, or comes out of its order");
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
