#ifndef PROCESS_PIDFD_H
#define PROCESS_PIDFD_H

#include <stdbool.h>
#include <sys/types.h>

#include <uv.h>

#include "protocol/error.h"

/*
 * Notices that any process has ended, also one that is not our child (pidfd_open(2), Linux 5.3; poll says readable).
 * Does not reap. Loop thread.
 */
struct pidfd_watch {
	uv_poll_t poll;
	int fd; /* owned until closed; -1 */
	void (*ended)(struct pidfd_watch *watch);
	void (*closed)(struct pidfd_watch *watch); /* the memory is the caller's again */
	void *context;
};

/* Errors: process_not_found when there is no such process. On failure closed is not called. */
bool pidfd_watch_open(struct pidfd_watch *watch, uv_loop_t *loop, pid_t pid, struct error *err);
void pidfd_watch_close(struct pidfd_watch *watch);

/* A descriptor (close-on-exec, the caller's) that means this process alone, whoever gets its number later. -1: errno. Any thread. */
int pidfd_open_process(pid_t pid);
/* pidfd_send_signal(2). False: errno. Any thread. */
bool pidfd_send(int pidfd, int signal);
/* Without waiting. Any thread. */
bool pidfd_has_ended(int pidfd);

#endif
