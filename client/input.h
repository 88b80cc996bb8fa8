#ifndef CLIENT_INPUT_H
#define CLIENT_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/profctl.h"

#define INPUT_BYTES 32768

/*
 * Our standard input, passed on to a build by WriteStdin piece by piece, while the connection does other things. Before poll: watch stdin for
 * reading when input_wants_read, and wait at most input_timeout_ms; after it call input_work.
 */
struct input {
	struct profclient *client;
	const json_t *build_id; /* borrowed */
	char bytes[INPUT_BYTES];
	size_t used;
	int64_t request;   /* waits for its reply; 0: none */
	uint64_t retry_ms; /* the daemon's buffer was full: not before (CLOCK_MONOTONIC) */
	bool at_end;       /* our input has ended */
	bool done;         /* the build was told so, or reads no more */
};

void input_init(struct input *input, struct profclient *client, const json_t *build_id);

bool input_wants_read(const struct input *input);
int input_timeout_ms(const struct input *input);

/* readable: stdin has something. False: err; code io with detail "stdin_closed" when the program has closed its standard input. */
bool input_work(struct input *input, bool readable, struct error *err);

#endif
