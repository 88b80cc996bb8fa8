#ifndef PROCESS_CHILD_H
#define PROCESS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "process/process.h"

/* What the system says about our own children. Any thread. */

enum child_reaped {
	CHILD_REAPED,  /* *end is filled */
	CHILD_NOT_YET, /* it runs; or it has ended but a tracer (a debugger) has not let go: try again */
	CHILD_LOST,    /* reaped by somebody else; *end is exit code -1 */
};

/* Reaps the child behind a pidfd (waitid(2), P_PIDFD; the raw call also tells its use of resources). Does not wait. */
enum child_reaped child_reap(int pidfd, struct process_exit *end);

/*
 * Does the group have a member that lives, besides its leader? A signal cannot tell: it reaches zombies too. Reads
 * /proc/<pid>/stat of every process (proc_pid_stat(5)), about 10 us each.
 */
bool child_group_has_members(pid_t leader);

#endif
