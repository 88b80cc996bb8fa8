#ifndef CLIENT_START_H
#define CLIENT_START_H

#include <stdbool.h>

#include "protocol/error.h"

/* A daemon that a client starts: in a session of its own, at /, with all descriptors but its log's closed, its log is <socket>.log. */

/* How long a daemon may take until it listens. */
#define START_TIMEOUT_MS 10000

/*
 * Starts one on the socket, unless one listens there by now: clients that start one at the same time take turns by a lock. Blocks until it listens.
 * idle_exit_s 0: it stays until it is stopped. Errors: the socket's folder is refused (not_permitted), detail "start_failed" with the daemon's own
 * reason, detail "program_missing", timeout. Async-signal-safe in the forked child, so that a program with threads can call it.
 */
bool start_daemon(const char *socket_path, int idle_exit_s, struct error *err);

#endif
