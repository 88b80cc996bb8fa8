#ifndef PROFD_PROFCLIENT_H
#define PROFD_PROFCLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * libprofclient: a connection to profd, its requests, replies and events (libprofclient(3); the messages are described in
 * profd-protocol(7)). Installed as <profd/profclient.h>; needs jansson alone. It prints nothing, keeps no state outside of the
 * connection and changes no signal's disposition; a connection belongs to one thread at a time.
 *
 * Blocking: profclient_call, profclient_event. From an event loop: watch profclient_fd for reading, and for writing while
 * profclient_wants_write, then call profclient_process, and take what came by profclient_reply and profclient_event with timeout 0.
 */
struct profclient;

/* Why something failed. Filled on failure and never read; NULL is allowed in its place everywhere. All texts are UTF-8 and end in NUL. */
struct profclient_error {
	char code[48];   /* the stable name: "build_not_found" (profd-protocol(7), ERRORS) */
	char detail[64]; /* a finer name, or "": see profclient_connect and profclient_reply */
	char message[4608];
	char hint[512]; /* what to do, or "" */
	bool retryable; /* trying again can help */
};

/* Zero means the default everywhere but in size. */
struct profclient_options {
	size_t size;             /* sizeof(struct profclient_options) */
	const char *socket_path; /* NULL: $PROFD_SOCKET, or the user's own */
	const char *client;      /* the program's name, for Hello; "libprofclient" */
	const char *version;     /* the program's version, for Hello */
	bool start;              /* start a daemon when none runs */
	bool
		any_protocol; /* connect to a daemon of another protocol version, to ask GetStatus or Shutdown */
	int timeout_ms;  /* for the answer to Hello: 5000. A daemon has 10 s to get ready beside that */
	int idle_exit_s; /* when the started daemon ends by itself: after 600 idle seconds; -1: never */
};

/*
 * Connects, checks that the server runs as our user or as root, and says Hello. options NULL: all defaults. Blocks for as long as the timeout
 * at most, and 10 s more when it starts a daemon. Owned by the caller: profclient_close. NULL: err, with the detail
 *   not_running       nobody listens on the socket
 *   not_a_socket      something else is in its place
 *   path_too_long     the socket's path does not fit a socket address
 *   start_failed      a daemon was started and ended; the message has its reason, the hint its log
 *   program_missing   there is no profd to start
 *   hung              it takes connections, but does not answer
 *   version_mismatch  it speaks another major version of the protocol
 * or the code not_permitted: the socket or its folder is somebody else's.
 */
struct profclient *profclient_connect(
	const struct profclient_options *options, struct profclient_error *err);
/* NULL is fine. What was not taken is freed. What was sent goes on: see on_client_exit in profd-protocol(7). */
void profclient_close(struct profclient *client);

/* The socket's path for these options, as profclient_connect finds it. False: err; path is untouched. */
bool profclient_socket_path(const struct profclient_options *options, char *path, size_t path_bytes,
	struct profclient_error *err);

/* The result of Hello: version, protocol, pid, instance_id, capabilities, limits. Borrowed, as long as the connection. */
const json_t *profclient_hello(const struct profclient *client);

/* The descriptor to watch: non-blocking, close-on-exec, the library's own. */
int profclient_fd(const struct profclient *client);
/* True while something that was sent waits for room in the socket. */
bool profclient_wants_write(const struct profclient *client);

/*
 * Sends and receives what is possible without waiting. False: err; the connection has ended (detail "disconnected") or is of no use any
 * more; what came before that can still be taken.
 */
bool profclient_process(struct profclient *client, struct profclient_error *err);

/*
 * Sends a request without waiting; takes params (an object, or NULL for none). The request's id, above 0, which profclient_reply wants;
 * 0: err. Of what is not yet written at most 16 MiB are kept.
 */
int64_t profclient_send(
	struct profclient *client, const char *method, json_t *params, struct profclient_error *err);

enum profclient_got {
	PROFCLIENT_FAILED = -1, /* err */
	PROFCLIENT_NOTHING = 0, /* not within the time; ask again */
	PROFCLIENT_GOT = 1,
};

/*
 * The reply to a request, waited for timeout_ms (-1: for ever; 0: only what has come). GOT: *result is owned by the caller, and the id is
 * done with. FAILED: the daemon's own error, and the id is done with too, or the connection's. An id that profclient_send did not give, or
 * that is done with, fails with invalid_request.
 */
enum profclient_got profclient_reply(struct profclient *client, int64_t id, int timeout_ms,
	json_t **result, struct profclient_error *err);

/* The reply to this request will not be asked for. (profd-protocol(7): Cancel ends the waiting on the daemon's side.) */
void profclient_forget(struct profclient *client, int64_t id);

/* Sends and waits for the result, which is owned by the caller; takes params. NULL: err; code "timeout", detail "no_reply" when it did not
 * come within timeout_ms (-1: for ever): the daemon may still do what was asked. Events that come meanwhile are kept. */
json_t *profclient_call(struct profclient *client, const char *method, json_t *params,
	int timeout_ms, struct profclient_error *err);

/*
 * The oldest event that was not taken, waited for timeout_ms (-1: for ever; 0: only what has come). GOT: *event is an object {"method",
 * "params"}, owned by the caller. Events that nobody takes are kept up to 64 MiB, then the connection ends with limit_exceeded.
 */
enum profclient_got profclient_event(
	struct profclient *client, int timeout_ms, json_t **event, struct profclient_error *err);

/* Whether profclient_event would have one at once. Look before you wait on the descriptor: what waits here makes it readable no more. */
bool profclient_has_event(const struct profclient *client);

/* Members of an event: "" and NULL when it has none. Borrowed. */
const char *profclient_event_name(const json_t *event);
const json_t *profclient_event_params(const json_t *event);

/* The library's version, "0.1.0". */
const char *profclient_version(void);

#ifdef __cplusplus
}
#endif

#endif
