#include "client/input.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/ids.h"
#include "client/reply.h"
#include "protocol/clock.h"
#include "protocol/text.h"

#define RETRY_MS 50

void input_init(struct input *input, struct profclient *client, const json_t *build_id)
{
	memset(input, 0, sizeof(*input));
	input->client = client;
	input->build_id = build_id;
}

bool input_wants_read(const struct input *input)
{
	return !input->done && !input->at_end && input->request == 0 && input->used == 0;
}

int input_timeout_ms(const struct input *input)
{
	if (input->done || input->retry_ms == 0) {
		return -1;
	}
	uint64_t now = clock_monotonic_ms();
	return now < input->retry_ms ? (int)(input->retry_ms - now) : 0;
}

static bool read_stdin(struct input *input, struct error *err)
{
	ssize_t count = read(STDIN_FILENO, input->bytes, sizeof(input->bytes));
	if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
		return true;
	}
	if (count < 0) {
		return error_errno(err, "read standard input");
	}
	input->at_end = count == 0;
	input->used = (size_t)count;
	return true;
}

static bool send_piece(struct input *input, struct error *err)
{
	json_t *params = json_pack("{s:O}", "build_id", input->build_id);
	if (input->used > 0) {
		char *encoded = text_base64(input->bytes, input->used);
		json_object_set_new(params, "data_b64", json_string(encoded));
		free(encoded);
	} else {
		json_object_set_new(params, "eof", json_true());
	}
	input->request = profctl_send(input->client, "WriteStdin", params, err);
	return input->request != 0;
}

static bool take_reply(struct input *input, struct error *err)
{
	json_t *result = NULL;
	enum profclient_got got = profctl_reply(input->client, input->request, 0, &result, err);
	if (got != PROFCLIENT_GOT) {
		return got == PROFCLIENT_NOTHING;
	}
	input->request = 0;
	size_t accepted = (size_t)reply_integer(result, "accepted_bytes");
	json_decref(result);
	input->done = input->at_end && input->used == 0;
	if (accepted > input->used) {
		return error_set(
			err, ERROR_INTERNAL, "profd accepted %zu bytes of %zu", accepted, input->used);
	}
	memmove(input->bytes, input->bytes + accepted, input->used - accepted);
	input->used -= accepted;
	input->retry_ms = input->used > 0 ? clock_monotonic_ms() + RETRY_MS : 0;
	return true;
}

bool input_work(struct input *input, bool readable, struct error *err)
{
	if (input->request != 0 && !take_reply(input, err)) {
		return false;
	}
	if (readable && input_wants_read(input) && !read_stdin(input, err)) {
		return false;
	}
	if (input->retry_ms > clock_monotonic_ms()) {
		return true;
	}
	input->retry_ms = 0;
	bool has_piece = input->used > 0 || input->at_end;
	return input->done || input->request != 0 || !has_piece || send_piece(input, err);
}

/* Until all is passed on. */
static bool pass_on(struct input *input, struct error *err)
{
	while (!input->done) {
		struct pollfd fds[2] = {
			{.fd = profclient_fd(input->client),
				.events = profclient_wants_write(input->client) ? POLLIN | POLLOUT : POLLIN},
			{.fd = input_wants_read(input) ? STDIN_FILENO : -1, .events = POLLIN}};
		poll(fds, 2, input_timeout_ms(input));
		if (!input_work(input, fds[1].revents != 0, err)) {
			return false;
		}
	}
	return true;
}

static int run_input(struct profctl *profctl, int argc, char **argv)
{
	static struct input input;
	int status = EXIT_SUCCESS;
	struct profclient *client = NULL;
	struct error err = {0};
	if (!profctl_operands(profctl, &input_command, argc, argv, 1, 1, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *record = ids_build(profctl, client, argv[optind], &status);
	if (record != NULL) {
		input_init(&input, client, json_object_get(record, "build_id"));
		if (!pass_on(&input, &err)) {
			status = profctl_fail(profctl, &err);
		}
	}
	json_decref(record);
	profclient_close(client);
	return status;
}

const struct profctl_command input_command = {
	.name = "input",
	.synopsis = "BUILD",
	.about = "pass standard input on to a program, to its end",
	.run = run_input,
};
