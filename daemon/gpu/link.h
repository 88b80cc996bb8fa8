#ifndef GPU_LINK_H
#define GPU_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "base/log.h"
#include "gpu/gpu.h"
#include "protocol/gpu_wire.h"
#include "protocol/limits.h"

/*
 * One process of an armed program, as the layer in it tells (protocol/gpu_wire.h). Nothing that comes is trusted: whoever runs as another user, does not
 * know the token, is silent at first, says what is no line, or says too much, is closed and logged, and nothing else. Loop thread only.
 */
struct link;

/* Told of one link, from the loop. After closed the link is gone. */
struct link_ops {
	void (*hello)(void *context, struct link *link);
	void (*device)(void *context, struct link *link);
	void (*frame)(void *context, struct link *link);
	void (*capturing)(
		void *context, struct link *link, uint64_t frame, uint64_t wall_ns, uint64_t mono_ns);
	void (*shader)(void *context, struct link *link, const struct gpu_shader *shader);
	void (*shaders_left_out)(void *context, struct link *link, uint64_t count);
	void (*document)(void *context, struct link *link, const struct gpu_document *document);
	/* What was started cannot begin, or end, since mono_ns. text as it came; borrowed for the call. */
	void (*waits)(
		void *context, struct link *link, bool is_end, uint64_t mono_ns, const char *text);
	/* code and text as they came; borrowed for the call. */
	void (*fault)(void *context, struct link *link, const char *code, const char *text);
	/* label may be ""; borrowed for the call. */
	void (*ask)(void *context, struct link *link, uint64_t number, const char *label);
	void (*bye)(void *context, struct link *link);
	void (*closed)(void *context, struct link *link);
};

struct link_options {
	uv_loop_t *loop;
	const struct log *log;
	const char *token; /* borrowed for the link's life */
	const struct link_ops *ops;
	void *context;
};

/* What a process has told so far; plain values. */
struct link_facts {
	pid_t pid; /* as the kernel says */
	bool is_greeted;
	bool is_again; /* its program has closed the connection before this one */
	char exe[512], version[32];
	size_t devices;
	struct gpu_device device;                  /* the last, or the one that is recorded */
	struct gpu_device made[LIMIT_GPU_DEVICES]; /* the different ones, */
	size_t made_count;                         /* as long as there is room */
	bool has_frame;
	uint64_t frame;
	char frame_by[16];
};

/* Takes the next connection of a listening stream. NULL: it was not let in (logged). */
struct link *link_accept(uv_stream_t *listener, const struct link_options *options);
const struct link_facts *link_facts(const struct link *link);
/* Sends a line that was ended. False: it cannot be, and the link closes. */
bool link_send(struct link *link, const struct gpu_wire_line *line);
/* Closes it; closed comes from a later turn of the loop. Idempotent. */
void link_close(struct link *link);
/* From now on nobody is told of it. */
void link_detach(struct link *link);

#endif
