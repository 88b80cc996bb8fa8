#ifndef SUPPORT_SERVER_DIALOGUE_H
#define SUPPORT_SERVER_DIALOGUE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <uv.h>

#include "protocol/limits.h"
#include "protocol/socket_path.h"
#include "server/events.h"
#include "server/server.h"

/*
 * A real server in this process, driven by real sockets: the loop turns while a test waits. Its methods: Echo (result: its
 * params), Empty, Later (kept until the test answers it), Watch {build, capture} (replies, then subscribes), Long {len} (a
 * text of so many bytes); anything else is unknown_method. Everything fails its test after 5 s.
 */
struct fixture {
	uv_loop_t loop;
	struct log log;
	char folder[64];
	char path[SOCKET_PATH_BYTES];
	struct server *server;
	struct request *kept
		[2 *
			LIMIT_REQUESTS_IN_FLIGHT]; /* the Later ones; NULL once told that their client is gone */
	size_t kept_count;
	size_t gone_requests, gone_clients, calls;
	bool closed;
};

/* One connection, as a simple client would have it. */
struct peer_end {
	int fd;
	char bytes[256 * 1024]; /* received and not yet heard */
	size_t used;
	bool ended;
};

#define DIALOGUE(name) cmocka_unit_test_setup_teardown(name, dialogue_setup, dialogue_teardown)

#define WAIT_MS 5000

/* Turns the loop until the condition holds; fails when it does not in time. */
#define WAIT_FOR(fixture, condition)                                                               \
	do {                                                                                           \
		uint64_t deadline_ms = real_ms() + WAIT_MS;                                                \
		while (!(condition) && real_ms() < deadline_ms) {                                          \
			turn(fixture);                                                                         \
		}                                                                                          \
		assert_true(condition);                                                                    \
	} while (0)

/* A request and its reply. */
#define ASK   "{\"id\":1,\"method\":\"Echo\",\"params\":{\"a\":[1,\"\\u00e9\"]}}"
#define ASKED "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"params\":{\"a\":[1,\"\\u00E9\"]}}}"

/* By so much the loop's clock runs ahead: this program has a clock_gettime of its own, so that no test waits for half a minute. */
extern uint64_t skipped_s;
/* CLOCK_MONOTONIC as it is. */
uint64_t real_ms(void);

int dialogue_setup(void **state);
int dialogue_teardown(void **state);
struct server *open_server(struct fixture *fixture, struct error *err);
/* From now on what is logged is thrown away. The caller closes log.fd. */
void quiet(struct fixture *fixture);
void turn(struct fixture *fixture);
size_t open_descriptors(void);

/* A connected non-blocking socket; dial also waits until the server has accepted. */
int connect_to(const struct fixture *fixture);
struct peer_end *dial(struct fixture *fixture);
void hang_up(struct peer_end *end);

void say_bytes(struct fixture *fixture, struct peer_end *end, const char *bytes, size_t len);
/* With a line end. */
void say(struct fixture *fixture, struct peer_end *end, const char *line);
/* Asks for 20 lines of 60,000 bytes without reading: the server has to wait for the reader. */
void fill(struct fixture *fixture, struct peer_end *end);

/* The next line, which must not be longer than the contract allows; NULL at the end of the stream. Owned. */
char *hear_text(struct fixture *fixture, struct peer_end *end);
/* Exactly so many bytes, NUL-terminated. Owned. */
char *hear_bytes(struct fixture *fixture, struct peer_end *end, size_t len);
json_t *hear(struct fixture *fixture, struct peer_end *end);
void assert_hears(struct fixture *fixture, struct peer_end *end, const char *expected);
/* An error reply: its number, data.code, and its id as JSON text. */
void assert_hears_error(
	struct fixture *fixture, struct peer_end *end, int number, const char *code, const char *id);
void assert_ends(struct fixture *fixture, struct peer_end *end);
/* Nothing comes, however often the loop turns. */
void assert_silent(struct fixture *fixture, struct peer_end *end);

void publish(struct fixture *fixture, const char *name, enum events_class class, const char *build,
	const char *capture, json_t *params);

#endif
