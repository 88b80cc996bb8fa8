#ifndef PROCESS_CHILD_H
#define PROCESS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "process/process.h"

/* What the system says about our own children. Any thread. */

/*
 * Reaps the child behind a pidfd, which has ended (waitid(2), P_PIDFD; the raw call also tells its use of resources).
 * False when it has not ended, or was reaped by somebody else: then the end is told as exit code -1.
 */
bool child_reap(int pidfd, struct process_exit *end);

/*
 * Does the group have a member that lives, besides its leader? A signal cannot tell: it reaches zombies too. Reads
 * /proc/<pid>/stat of every process (proc_pid_stat(5)), about 10 us each.
 */
bool child_group_has_members(pid_t leader);

#endif
