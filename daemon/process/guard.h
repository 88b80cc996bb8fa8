#ifndef PROCESS_GUARD_H
#define PROCESS_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "protocol/error.h"

/*
 * The daemon's end of profd-gate --guard (protocol/gate.h): the process that kills the listed groups when the daemon is gone, however
 * it went. A guard that dies is replaced at once (after a second when it had not lived that long) and told all groups again. The socket to it is
 * close-on-exec and its events do not keep the loop alive. Loop thread.
 */
struct guard {
	uv_loop_t *loop;       /* borrowed */
	const char *gate_path; /* borrowed */
	int fd, pidfd;         /* owned; -1: there is none */
	uv_poll_t *poll;       /* owned; closes later than the guard's replacement may come */
	uv_timer_t *again;     /* owned */
	uint64_t started_ms;
	/* Calls guard_list for every group that must die with the daemon. */
	void (*tell_all)(struct guard *guard);
	void *context;
};

/* Starts none. False: memory is out. */
bool guard_init(struct guard *guard, uv_loop_t *loop, const char *gate_path, struct error *err);
/* Its end: whoever is listed still is killed by it. The loop must turn once more. */
void guard_finish(struct guard *guard);

/* There is one that lives, and it knows every group. Waits for it to have let go of us: a millisecond. Errors: launch_failed. */
bool guard_ensure(struct guard *guard, struct error *err);
/* The group is known to it, or to the one that replaces it: tell_all must know the group already. Errors: launch_failed. */
bool guard_add(struct guard *guard, pid_t group, struct error *err);
/* For tell_all. False: it does not listen any more, and is replaced. */
bool guard_list(struct guard *guard, pid_t group);
void guard_remove(struct guard *guard, pid_t group);

#endif
