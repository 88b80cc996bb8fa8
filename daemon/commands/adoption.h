#ifndef COMMANDS_ADOPTION_H
#define COMMANDS_ADOPTION_H

#include "commands/daemon.h"

/*
 * Waits for an adopted process to leave its gate. Nobody tells us, so it is looked at: every 10 ms, after a second ten times a second.
 * Owned by the daemon; ends with the gate.
 */
struct adoption;

/* Looks now, so that what is asked about the process is true. Harmless for one that does not wait. */
void adoption_look(struct daemon *daemon, const struct process *process);

/* Before the processes are destroyed; the loop must turn once more. */
void adoptions_finish(struct daemon *daemon);

#endif
