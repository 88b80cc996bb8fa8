#ifndef CLIENT_JOB_H
#define CLIENT_JOB_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/witness.h"

/*
 * The program under `profctl record` as a shell sees it: profctl's child in profctl's process group. What the terminal or somebody else sends to the
 * group reaches both; what comes to profctl alone is passed on, also the hang-up that the kernel tells to the leader of a terminal's session alone; when the
 * program stops itself, profctl stops too, so that the shell gets its prompt. One at a time: signals are the process's. Main thread.
 */
struct job {
	pid_t pid;
	int pidfd; /* owned; readable when it has ended */
	struct witness witness;
	int wait_status; /* once reaped */
	bool is_reaped;
};

#define JOB_NONE                                                                                   \
	{                                                                                              \
		.pidfd = -1, .witness = WITNESS_NONE                                                       \
	}

/* Right before the program is started: signals that would end us are caught from now on. Those that are ignored stay so until job_watch, as the program inherits that; then they are passed on, and are nothing to us. */
void job_catch_signals(void);
/* As many were caught. */
int job_signals_seen(void);
/* As many of them were SIGINT; and of these, as many came from the terminal, so to the whole group. */
int job_interrupts_seen(void);
int job_terminal_interrupts_seen(void);

/* Takes over the child, which was just started, with what has come since job_catch_signals. False: errno. */
bool job_watch(struct job *job, pid_t pid);
/* Ends all that is in our group as the terminal's Ctrl-C does, but by SIGTERM, and without us. */
void job_end_group(void);
/* Zero-initialise with JOB_NONE. */
void job_finish(struct job *job);

/*
 * Waits until the program has ended, fd (-1: none) is readable, or timeout_ms (-1: for ever) are over; whichever of it: look. Follows the
 * program's stops meanwhile.
 */
void job_wait(struct job *job, int fd, int timeout_ms);
/* Takes the exit status when it has ended, or waits for that. True: wait_status is known, or it never will be (then it is that of exit(125)). */
bool job_reap(struct job *job, bool must_wait);
/* The exit status that a shell would give. */
int job_shell_status(const struct job *job);
/* At the very end, with our exit status: when that says that the program died of SIGINT, so do we, as a shell's loop ends with Ctrl-C only then. Returns otherwise. */
void job_die_with_it(int status);

#endif
