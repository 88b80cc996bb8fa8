#include "process/output.h"

#include <errno.h>
#include <unistd.h>

/* Reads in one turn of the loop: a program that floods must not keep others waiting. */
#define READS_PER_TURN 4

/* 1: got some, 0: nothing now, -1: the end. */
static int read_once(struct output *output)
{
	ssize_t count;
	do {
		count = read(output->fd, output->bytes, OUTPUT_READ_BYTES);
	} while (count < 0 && errno == EINTR);
	if (count > 0) {
		uint64_t offset = output->offset;
		output->offset += (uint64_t)count;
		output->read(output, offset, output->bytes, (size_t)count);
		return 1;
	}
	return count < 0 && errno == EAGAIN ? 0 : -1;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status; /* an error shows in the read */
	(void)events;
	struct output *output = poll->data;
	for (int i = 0; i < READS_PER_TURN && output->fd >= 0; i++) {
		int result = read_once(output);
		if (result < 0) {
			output_close(output);
			output->ended(output);
			return;
		}
		if (result == 0) {
			return;
		}
	}
}

bool output_open(struct output *output, uv_loop_t *loop, int fd, struct error *err)
{
	int status = uv_poll_init(loop, &output->poll, fd); /* makes it non-blocking */
	if (status != 0) {
		close(fd);
		return error_errno_as(err, ERROR_IO, status, "cannot watch the program's output");
	}
	output->fd = fd;
	output->poll.data = output;
	uv_poll_start(&output->poll, UV_READABLE, on_readable);
	return true;
}

void output_read_rest(struct output *output, size_t limit)
{
	uint64_t end = output->offset + limit;
	while (output->fd >= 0 && output->offset < end && read_once(output) > 0) {
	}
}

static void on_closed(uv_handle_t *handle)
{
	struct output *output = handle->data;
	output->closed(output);
}

void output_close(struct output *output)
{
	if (output->fd < 0) {
		return;
	}
	uv_close((uv_handle_t *)&output->poll, on_closed);
	close(output->fd);
	output->fd = -1;
}
