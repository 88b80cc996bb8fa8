/*
 * Linked to a program of aarch64: it takes snapshots of itself into the file that $SNAPSHOTS names, so that an emulator without perf is enough to
 * have stacks of that machine.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind/snapshots.h"

extern char **environ;
static int file = -1;
static uintptr_t stack_top;

static void take(int number, siginfo_t *info, void *context)
{
	const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
	struct snapshot snapshot = {.mark = SNAPSHOT_MARK,
		.sp = machine->sp,
		.pc = machine->pc,
		.stack_bytes = stack_top - machine->sp};

	(void)number;
	(void)info;
	memcpy(snapshot.registers, machine->regs, sizeof(snapshot.registers));
	if (write(file, &snapshot, sizeof(snapshot)) != sizeof(snapshot) ||
		write(file, (const void *)machine->sp, snapshot.stack_bytes) !=
			(ssize_t)snapshot.stack_bytes) {
		_exit(3);
	}
}

__attribute__((constructor)) static void start(void)
{
	static const struct itimerval often = {{0, 2000}, {0, 2000}};
	struct sigaction action = {.sa_sigaction = take, .sa_flags = SA_SIGINFO | SA_RESTART};
	const char *path = getenv("SNAPSHOTS");

	if (path != NULL) {
		file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		stack_top = (uintptr_t)environ;
		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
	}
}
