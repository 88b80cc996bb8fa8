#ifndef SHUTDOWN_H
#define SHUTDOWN_H

#include <uv.h>

#include "commands/daemon.h"

/*
 * How the daemon ends: on Shutdown, on a signal, or because nobody needs it. Embedded in main.c's program. Loop thread.
 *
 *   runs ──drain──► refuses what is new ──no capture left──► stop
 *   runs ──stop───► captures end, children get SIGTERM (SIGKILL after 5 s) ──all gone, or 10 s──► close
 *   any  ──now────► children get SIGKILL ──► close
 *   close: DaemonStopping to everyone, queues flushed, socket removed, the loop ends
 */
struct shutdown {
	struct daemon *daemon;
	uint64_t idle_exit_ms; /* 0: never */
	uv_signal_t interrupt, terminate;
	uv_timer_t idle;  /* armed when something has ended, so that an idle daemon is woken once */
	uv_timer_t look;  /* armed for the loop's next turn when something has ended */
	uv_timer_t limit; /* of a stop */
	bool closing;
	bool
		left_something; /* captures or children still live when the loop ends: their memory is not ours to free */
};

void shutdown_init(struct shutdown *shutdown, struct daemon *daemon, uint64_t idle_exit_ms);
/* After the loop has ended, or instead of it: closes the handles; the loop must turn once more. */
void shutdown_finish(struct shutdown *shutdown);

void shutdown_begin(struct shutdown *shutdown, enum daemon_shutdown mode);
/* Something has ended. */
void shutdown_settled(struct shutdown *shutdown);

#endif
