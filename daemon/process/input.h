#ifndef PROCESS_INPUT_H
#define PROCESS_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

#include "base/buffer.h"
#include "protocol/error.h"

/*
 * What a program reads: the writing end of a pipe, or a terminal's master. Bytes that it does not take yet wait here, so nobody
 * waits for it. The process must ignore SIGPIPE. Zero-initialise, fd = -1. Loop thread.
 */
struct input {
	uv_poll_t poll;
	int fd;                /* owned; -1: closed, or never opened */
	struct buffer waiting; /* at most LIMIT_INPUT_BYTES, the first `sent` of which are gone */
	size_t sent;
	bool ends;   /* nothing more will come: it is closed as soon as nothing waits */
	bool broken; /* the program has closed its end */
	void (*closed)(struct input *input); /* the memory is the caller's again */
	void *context;
};

/* Takes fd, also on failure; then closed is not called. */
bool input_open(struct input *input, uv_loop_t *loop, int fd, struct error *err);
/*
 * Writes or keeps what there is room for; *accepted says how many that were. Errors: io (detail stdin_closed: the program reads no more),
 * bad_params (the same detail: it was ended before), limit_exceeded.
 */
bool input_write(
	struct input *input, const char *bytes, size_t len, size_t *accepted, struct error *err);
/* The program reads its end once it has read what waits. */
void input_end(struct input *input);
/* At once; harmless when it is closed or was never opened. */
void input_close(struct input *input);

#endif
