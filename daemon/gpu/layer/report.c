#include "gpu/layer/report.h"

#include <stdio.h>
#include <unistd.h>

#include "gpu/layer/wish.h"
#include "protocol/clock.h"

void report_hello(struct channel *channel, const char *token, const char *api, const char *order,
	const struct renderdoc *renderdoc, bool is_again)
{
	struct gpu_wire_line line;
	char exe[GPU_WIRE_NAME_BYTES];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[len > 0 ? len : 0] = '\0';
	gpu_wire_begin(&line, "hello");
	gpu_wire_text(&line, "token", token);
	gpu_wire_number(&line, "pid", (uint64_t)getpid());
	gpu_wire_number(&line, "ppid", (uint64_t)getppid());
	gpu_wire_text(&line, "exe", exe);
	gpu_wire_text(&line, "api", api);
	gpu_wire_text(&line, "order", order);
	gpu_wire_text(&line, "renderdoc", renderdoc->path);
	gpu_wire_text(&line, "renderdoc_api", renderdoc->version);
	if (is_again) {
		gpu_wire_text(&line, "again", "closed");
	}
	channel_send(channel, &line, true);
}

void report_device(struct channel *channel, const struct report_device *device)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "device");
	gpu_wire_text(&line, "name", device->name);
	gpu_wire_text(&line, "type", device->type);
	gpu_wire_text(&line, "driver", device->driver);
	gpu_wire_text(&line, "uuid", device->uuid);
	gpu_wire_number(&line, "index", device->index);
	channel_send(channel, &line, true);
}

void report_frame(struct channel *channel, uint64_t frame, enum frame_rule rule, bool must)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "frame");
	gpu_wire_number(&line, "n", frame);
	gpu_wire_text(&line, "by", wish_rule_name(rule));
	channel_send(channel, &line, must);
}

void report_capturing(struct channel *channel, uint64_t frame, const struct report_device *device)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "capturing");
	gpu_wire_number(&line, "frame", frame);
	gpu_wire_number(&line, "wall_ns", clock_read_ns(CLOCK_REALTIME));
	gpu_wire_number(&line, "mono_ns", clock_monotonic_ns());
	if (device != NULL) {
		gpu_wire_text(&line, "name", device->name);
		gpu_wire_text(&line, "uuid", device->uuid);
		gpu_wire_number(&line, "index", device->index);
	}
	channel_send(channel, &line, true);
}

void report_shader(struct channel *channel, const struct shader_use *use)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "shader");
	gpu_wire_text(&line, "hash", use->hash);
	gpu_wire_number(&line, "bytes", use->bytes);
	gpu_wire_text(&line, "stage", use->stage);
	gpu_wire_text(&line, "entry", use->entry);
	channel_send(channel, &line, true);
}

void report_shaders_left_out(struct channel *channel, uint64_t left_out)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "shaders");
	gpu_wire_number(&line, "left_out", left_out);
	channel_send(channel, &line, true);
}

void report_document(struct channel *channel, const struct renderdoc_document *document,
	const struct report_frames *frames, enum recording_ender by)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "document");
	gpu_wire_text(&line, "path", document->path);
	gpu_wire_number(&line, "bytes", document->bytes);
	gpu_wire_number(&line, "first", frames->first);
	gpu_wire_number(&line, "last", frames->last);
	if (frames->is_open) {
		gpu_wire_number(&line, "open", 1);
	}
	if (by != RECORDING_ENDED) {
		gpu_wire_text(&line, "by", by == RECORDING_ENDED_BY_PROGRAM ? "program" : "window");
	}
	channel_send(channel, &line, true);
}

void report_ask(struct channel *channel, uint64_t number, const char *label)
{
	struct gpu_wire_line line;
	char text[GPU_WIRE_NAME_BYTES];
	snprintf(text, sizeof(text), "%s", label != NULL ? label : "");
	gpu_wire_begin(&line, "ask");
	gpu_wire_number(&line, "n", number);
	gpu_wire_text(&line, "label", text);
	channel_send(channel, &line, true);
}

void report_waits(struct channel *channel, bool is_end, uint64_t since_ns, const char *text)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "waits");
	gpu_wire_text(&line, "for", is_end ? "end" : "begin");
	gpu_wire_number(&line, "mono_ns", since_ns);
	gpu_wire_text(&line, "text", text);
	channel_send(channel, &line, true);
}

void report_fault(struct channel *channel, const struct fault *fault)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "fault");
	gpu_wire_text(&line, "code", fault->code);
	gpu_wire_text(&line, "text", fault->text);
	channel_send(channel, &line, true);
}

void report_bye(struct channel *channel, const char *why)
{
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "bye");
	gpu_wire_text(&line, "why", why);
	channel_send(channel, &line, true);
}
