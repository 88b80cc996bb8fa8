#ifndef CLIENT_WITNESS_H
#define CLIENT_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whom a signal was meant for. Who gets one learns who sent it (sigaction(2), si_pid), not whether it was sent to this process alone or to its whole
 * group, as a shell does at its end and with "kill %1", timeout(1), and a service manager process by process. The witness is a child of ours in our group that does nothing but
 * receive: what reaches us and it was sent to all, so the program has it too; what reaches us and not it was for us alone, and it sends that to
 * the program. Main thread.
 */
struct witness {
	pid_t pid; /* 0: none */
	int fd;    /* owned; ours */
};

#define WITNESS_NONE                                                                               \
	{                                                                                              \
		.fd = -1                                                                                   \
	}

/* How long the witness waits for what we have got. A group is signalled at one stroke; a service manager goes through its processes one by one. */
#define WITNESS_PATIENCE_MS 50

/* Its name, in ps too; it has to be another than ours, and than the daemon's. */
#define WITNESS_NAME "signal-witness"
/* How long it remembers what it has got, for a question that comes later. */
#define WITNESS_MEMORY_MS 250

/* main's, once, before witness_start. They must lie in one piece, as exec puts them. */
void witness_know_arguments(int argc, char **argv);

/* pidfd: the program's; borrowed for the call. False: there is none (errno), and whoever has a signal passes it on as he sees fit. */
bool witness_start(struct witness *witness, int pidfd);
/* We got this signal from that process: it is passed on unless the witness gets it too. A witness that was stopped with us goes on. False: there is none any more. Async-signal-safe. */
bool witness_ask(const struct witness *witness, int number, pid_t sender);
/* When the program has ended. Zero-initialise with WITNESS_NONE. */
void witness_finish(struct witness *witness);

#endif
