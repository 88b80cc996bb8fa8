#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/gate.h"

#define MAX_ANSWERS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the owner of a gate is told, up to the first failure or the end of the stream. */
struct answers {
	enum gate_state states[MAX_ANSWERS];
	size_t len;
	struct error err;
};

static void check_error(const struct error *err)
{
	if (err->code != ERROR_LAUNCH_FAILED || err->message[0] == '\0' || err->detail[0] == '\0') {
		abort();
	}
	json_t *shown = error_to_json(err);
	if (shown == NULL) {
		abort();
	}
	json_decref(shown);
}

/* Everything that can be read now; false when nothing will come any more. */
static bool listen_now(struct gate *gate, bool gone, struct answers *answers)
{
	while (answers->len < MAX_ANSWERS) {
		enum gate_state state = gate_read(gate, gone, &answers->err);
		if (state == GATE_WAITING) {
			return true;
		}
		answers->states[answers->len++] = state;
		if (state == GATE_FAILED) {
			check_error(&answers->err);
		}
		if (state != GATE_IS_READY) {
			return false;
		}
	}
	return false;
}

/* A gate that says these bytes piece by piece, and then ends. */
static void hear(struct answers *answers, const uint8_t *data, size_t size, size_t piece, bool gone)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		abort();
	}
	struct gate gate = {.fd = ends[0]};
	bool more = true;
	for (size_t at = 0; more && at < size; at += piece) {
		size_t len = piece < size - at ? piece : size - at;
		if (send(ends[1], data + at, len, MSG_NOSIGNAL) != (ssize_t)len) {
			abort();
		}
		more = listen_now(&gate, gone, answers);
	}
	close(ends[1]);
	if (more && listen_now(&gate, gone, answers)) {
		abort(); /* an end is never nothing */
	}
	gate_close(&gate);
}

/* The first byte says how the rest is cut; any cut is understood as one piece is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 16 * 1024) {
		return 0;
	}
	bool gone = data[0] & 1;
	size_t piece = size > 512 ? size / 8 : (size_t)(data[0] >> 1) % 31 + 1;
	struct answers whole = {0}, cut = {0};
	hear(&whole, data + 1, size - 1, size, gone);
	hear(&cut, data + 1, size - 1, piece, gone);
	if (whole.len != cut.len || memcmp(whole.states, cut.states, sizeof(whole.states)) != 0 ||
		strcmp(whole.err.message, cut.err.message) != 0 ||
		strcmp(whole.err.detail, cut.err.detail) != 0) {
		abort();
	}
	return 0;
}
