#include "client/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/reply.h"
#include "client/signals.h"
#include "protocol/names.h"

#define POLL_MS 250

void follow_init(struct follow *follow, const struct profctl *profctl, struct profclient *client,
	const json_t *build_id)
{
	*follow = (struct follow){
		.profctl = profctl,
		.client = client,
		.build_id = build_id,
		.streams = {{.name = "stdout", .fd = STDOUT_FILENO},
			{.name = "stderr", .fd = STDERR_FILENO}},
	};
}

static void tell_all_lost(struct follow_stream *stream)
{
	if (stream->lost > 0) {
		fprintf(stderr,
			"profctl: %" JSON_INTEGER_FORMAT
			" bytes of %s are lost: they were not read before profd had to drop them\n",
			stream->lost, stream->name);
	}
	stream->lost = 0;
}

void follow_finish(struct follow *follow)
{
	tell_all_lost(&follow->streams[0]);
	tell_all_lost(&follow->streams[1]);
	json_decref(follow->exited);
	follow->exited = NULL;
}

static bool write_all(int fd, const char *bytes, size_t len, struct error *err)
{
	while (len > 0) {
		ssize_t count = write(fd, bytes, len);
		if (count < 0 && errno != EINTR) {
			error_errno(err, "write the program's output");
			return error_hint(err, "the program goes on; profctl output has what it wrote last");
		}
		if (count > 0) {
			bytes += count;
			len -= (size_t)count;
		}
	}
	return true;
}

/* One line a second at most: a program that writes faster than we read leaves a hole in every reply. */
static void tell_lost(struct follow_stream *stream, json_int_t bytes)
{
	time_t now = time(NULL);
	stream->lost += bytes;
	if (stream->told_s != now) {
		stream->told_s = now;
		tell_all_lost(stream);
	}
}

/* Writes a piece that begins at offset, as far as it is new; with --json the piece itself. */
static bool put(struct follow *follow, struct follow_stream *stream, json_int_t offset,
	const json_t *piece, struct error *err)
{
	size_t len = 0;
	char *bytes = reply_bytes(piece, &len);
	if (bytes == NULL) {
		return error_set(err, ERROR_INTERNAL, "profd sent output that is neither text nor base64");
	}
	if (offset > stream->offset) {
		tell_lost(stream, offset - stream->offset);
		stream->offset = offset;
	}
	json_int_t known = stream->offset - offset;
	bool ok = true;
	if (known < (json_int_t)len) {
		if (follow->profctl->json) {
			profctl_print_json(stdout, piece);
			fflush(stdout);
		} else {
			ok = write_all(stream->fd, bytes + known, len - (size_t)known, err);
		}
		stream->offset = offset + (json_int_t)len;
	}
	free(bytes);
	return ok;
}

/* Writes what is kept of one stream, up to its end or (when it is not -1) an offset. */
static bool read_stream(
	struct follow *follow, struct follow_stream *stream, json_int_t until, struct error *err)
{
	bool goes_on = true;
	while (goes_on && (until < 0 || stream->offset < until)) {
		json_t *params =
			json_pack("{s:O, s:s}", "build_id", follow->build_id, "stream", stream->name);
		if (stream->offset > 0) {
			json_object_set_new(params, "offset", json_integer(stream->offset));
		}
		json_t *reply = profctl_try(follow->client, "GetOutput", params, err);
		if (reply == NULL) {
			return false;
		}
		json_int_t offset = reply_integer(reply, "offset");
		json_int_t before = stream->offset;
		if (!put(follow, stream, offset, reply, err)) {
			json_decref(reply);
			return false;
		}
		goes_on = stream->offset > before && !json_is_true(json_object_get(reply, "eof"));
		json_decref(reply);
	}
	return true;
}

bool follow_read(struct follow *follow, struct error *err)
{
	for (size_t i = 0; i < 2; i++) {
		if (follow->streams[i].fd >= 0 && !read_stream(follow, &follow->streams[i], -1, err)) {
			return false;
		}
	}
	return true;
}

static bool take_output(struct follow *follow, const json_t *params, struct error *err)
{
	const char *name = reply_string(params, "stream");
	for (size_t i = 0; i < 2; i++) {
		struct follow_stream *stream = &follow->streams[i];
		if (stream->fd < 0 || strcmp(stream->name, name) != 0) {
			continue;
		}
		json_int_t offset = reply_integer(params, "offset");
		if (offset > stream->offset && !read_stream(follow, stream, offset, err)) {
			return false;
		}
		return put(follow, stream, offset, params, err);
	}
	return true;
}

bool follow_take(struct follow *follow, const json_t *event, struct error *err)
{
	const char *name = profclient_event_name(event);
	const json_t *params = profclient_event_params(event);
	if (!json_equal(json_object_get(params, "build_id"), follow->build_id)) {
		return true;
	}
	if (strcmp(name, EVENT_PROCESS_OUTPUT) == 0) {
		return take_output(follow, params, err);
	}
	if (strcmp(name, EVENT_PROCESS_EXITED) == 0 && follow->exited == NULL) {
		follow->exited = json_incref((json_t *)params);
	}
	return true;
}

bool follow_run(struct follow *follow, struct error *err)
{
	while (follow->exited == NULL) {
		json_t *event = NULL;
		enum profclient_got got =
			profctl_event(follow->client, follow->polls ? POLL_MS : -1, &event, err);
		bool ok = got == PROFCLIENT_GOT       ? follow_take(follow, event, err)
				  : got == PROFCLIENT_NOTHING ? follow_read(follow, err)
											  : false;
		json_decref(event);
		if (!ok) {
			return false;
		}
	}
	/* What was dropped at the very end is still kept. */
	return follow_read(follow, err);
}

int follow_status(const json_t *exited)
{
	struct error err = {0};
	if (error_from_json(&err, json_object_get(exited, "error"))) {
		profctl_complain(&err);
	}
	const char *name = reply_string(exited, "signal");
	if (name[0] != '\0') {
		return 128 + signals_number(name);
	}
	return (int)reply_integer(exited, "exit_code");
}
