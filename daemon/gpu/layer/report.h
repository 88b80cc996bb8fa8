#ifndef GPU_LAYER_REPORT_H
#define GPU_LAYER_REPORT_H

#include <stdint.h>

#include "gpu/layer/channel.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/frames.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/shaders.h"

/* The lines that profd is sent (protocol/gpu_wire.h says when). All but frames wait for room. Not thread-safe: the session's lock is around. */

struct report_device {
	char name[256], driver[256], uuid[33];
	const char *type;
	unsigned index;
};

/* is_again: the program has closed the connection before this one. */
void report_hello(struct channel *channel, const char *token, const char *api, const char *order,
	const struct renderdoc *renderdoc, bool is_again);
void report_device(struct channel *channel, const struct report_device *device);
/* must: it is not dropped when profd is slow. */
void report_frame(struct channel *channel, uint64_t frame, enum frame_rule rule, bool must);
/* It begins now, on this device (NULL: not known). */
void report_capturing(struct channel *channel, uint64_t frame, const struct report_device *device);
void report_shader(struct channel *channel, const struct shader_use *use);
void report_shaders_left_out(struct channel *channel, uint64_t left_out);
enum recording_ender {
	RECORDING_ENDED,            /* what was wished for is over, or what it was of is gone */
	RECORDING_ENDED_BY_PROGRAM, /* by a call of its own for that */
	RECORDING_ENDED_BY_WINDOW,  /* the swapchain that was presented last goes */
};

/* The frames from first to last are in it. is_open: the last has not come to its end. */
struct report_frames {
	uint64_t first, last;
	bool is_open;
};

void report_document(struct channel *channel, const struct renderdoc_document *document,
	const struct report_frames *frames, enum recording_ender by);
/* label NULL: none. One that is too long is cut. */
void report_ask(struct channel *channel, uint64_t number, const char *label);
/* What was started cannot begin, or end, since then (CLOCK_MONOTONIC). */
void report_waits(struct channel *channel, bool is_end, uint64_t since_ns, const char *text);
void report_fault(struct channel *channel, const struct fault *fault);
void report_bye(struct channel *channel, const char *why);

#endif
