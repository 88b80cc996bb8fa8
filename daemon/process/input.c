#include "process/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "protocol/limits.h"

static void on_writable(uv_poll_t *poll, int status, int events);

static void on_closed(uv_handle_t *handle)
{
	struct input *input = handle->data;
	input->closed(input);
}

bool input_open(struct input *input, uv_loop_t *loop, int fd, struct error *err)
{
	int status = uv_poll_init(loop, &input->poll, fd); /* makes it non-blocking */
	if (status != 0) {
		close(fd);
		return error_errno_as(err, ERROR_IO, status, "cannot watch the program's input");
	}
	input->fd = fd;
	input->poll.data = input;
	return true;
}

void input_close(struct input *input)
{
	buffer_finish(&input->waiting);
	input->sent = 0;
	if (input->fd < 0) {
		return;
	}
	uv_close((uv_handle_t *)&input->poll, on_closed);
	close(input->fd);
	input->fd = -1;
}

static size_t waiting(const struct input *input)
{
	return input->waiting.len - input->sent;
}

/* How many were taken now. A program that reads no more breaks it. */
static size_t write_now(struct input *input, const void *bytes, size_t len)
{
	size_t done = 0;
	while (done < len) {
		ssize_t count = write(input->fd, (const char *)bytes + done, len - done);
		if (count > 0) {
			done += (size_t)count;
		} else if (count == 0 || errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			input->broken = true;
			break;
		}
	}
	return done;
}

/* Room at the end is made by moving what still waits to the beginning. */
static void drop_sent(struct input *input)
{
	size_t left = waiting(input);
	if (input->sent > 0) {
		memmove(input->waiting.data, input->waiting.data + input->sent, left);
	}
	input->waiting.len = left;
	input->sent = 0;
}

static void settle(struct input *input)
{
	if (input->broken || (input->ends && waiting(input) == 0)) {
		input_close(input);
	} else if (waiting(input) > 0) {
		uv_poll_start(&input->poll, UV_WRITABLE, on_writable);
	} else {
		buffer_finish(&input->waiting);
		input->sent = 0;
		uv_poll_stop(&input->poll);
	}
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	(void)status; /* an error shows in the write */
	(void)events;
	struct input *input = poll->data;
	input->sent += write_now(input, input->waiting.data + input->sent, waiting(input));
	settle(input);
}

static bool is_closed(const struct input *input, struct error *err)
{
	if (!input->broken && !input->ends) {
		return false;
	}
	error_set(err, input->broken ? ERROR_IO : ERROR_BAD_PARAMS, "%s",
		input->broken ? "the program has closed its standard input"
					  : "standard input was ended by an earlier eof");
	error_detail(err, "stdin_closed");
	error_hint(err, "launch the program again to give it other input");
	return true;
}

bool input_write(
	struct input *input, const char *bytes, size_t len, size_t *accepted, struct error *err)
{
	if (is_closed(input, err)) {
		return false;
	}
	size_t done = waiting(input) == 0 ? write_now(input, bytes, len) : 0;
	if (input->broken) {
		input_close(input);
		is_closed(input, err);
		return false;
	}
	drop_sent(input);
	size_t room = LIMIT_INPUT_BYTES - input->waiting.len;
	size_t kept = len - done < room ? len - done : room;
	if (kept > 0 && !buffer_append(&input->waiting, bytes + done, kept)) {
		kept = 0;
		if (done == 0) {
			return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu bytes of input", len);
		}
	}
	*accepted = done + kept;
	settle(input);
	return true;
}

void input_end(struct input *input)
{
	if (input->fd >= 0) {
		input->ends = true;
		settle(input);
	}
}
