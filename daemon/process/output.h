#ifndef PROCESS_OUTPUT_H
#define PROCESS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "protocol/error.h"

#define OUTPUT_READ_BYTES 65536 /* a pipe's usual capacity */

/*
 * One stream of a program: the reading end of a pipe, or a terminal's master, that is read as soon as it has something, whoever
 * listens. Its end is the end of file, or any error (a terminal that nobody has open says EIO). Zero-initialise, fd = -1. Loop thread.
 */
struct output {
	uv_poll_t poll;
	int fd;          /* owned; -1: ended, closed or never opened */
	uint64_t offset; /* of the next byte */
	char *bytes;     /* borrowed: OUTPUT_READ_BYTES to read into */
	/* Borrowed for the call. */
	void (*read)(struct output *output, uint64_t offset, const char *bytes, size_t len);
	void (*ended)(struct output *output);  /* end of stream; the output is closed already */
	void (*closed)(struct output *output); /* the memory is the caller's again */
	void *context;
};

/* Begins to read. Takes fd, also on failure; then closed is not called. */
bool output_open(struct output *output, uv_loop_t *loop, int fd, struct error *err);
/* Reads what is there now, at most limit bytes; without calling ended. */
void output_read_rest(struct output *output, size_t limit);
/* Harmless when it is closed or was never opened. */
void output_close(struct output *output);

#endif
