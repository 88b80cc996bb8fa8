#include "gate_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate_words.h"
#include "protocol/gate.h"

#define LAST_SIGNAL 64

/* Fixed: a guard must not fail for want of memory. */
struct guard {
	pid_t groups[GATE_GUARD_GROUPS];
	size_t len;
	char line[GATE_GUARD_LINE_BYTES]; /* what has come of the next one */
	size_t used;
};

/* Only SIGKILL and SIGSTOP are left. The kernel's struct sigaction: SIG_IGN, no flags, no mask. */
static void ignore_signals(void)
{
	static const unsigned long ignored[8] = {1 /* SIG_IGN */};
	for (int signal = 1; signal <= LAST_SIGNAL; signal++) {
		syscall(SYS_rt_sigaction, signal, ignored, NULL, 8);
	}
}

static void take_null(int fd)
{
	int null = open("/dev/null", O_RDWR);
	for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
		if (null < 0 || dup2(null, i) < 0) {
			gate_fail(fd, "guard", errno, "/dev/null cannot be opened: %s", strerror(errno));
		}
	}
}

/* Nothing of the owner's is kept but fd. */
static void let_go(int fd)
{
	ignore_signals();
	if (chdir("/") != 0) {
		gate_fail(fd, "guard", errno, "/ cannot be entered: %s", strerror(errno));
	}
	take_null(fd);
	gate_close_others(fd);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "profd-guard");
}

static void forget(struct guard *guard, pid_t group)
{
	for (size_t i = 0; i < guard->len; i++) {
		if (guard->groups[i] == group) {
			guard->groups[i] = guard->groups[--guard->len];
			return;
		}
	}
}

/* One line without its end. False: that is not the owner's language. */
static bool obey(struct guard *guard, const char *line)
{
	unsigned long group;
	/* 0 would be our own group, 1 everybody. */
	if (!gate_number(line + 1, 10, &group) || group < 2 || group > INT_MAX) {
		return false;
	}
	forget(guard, (pid_t)group); /* a group that is told again stands once */
	if (line[0] == '+' && guard->len < GATE_GUARD_GROUPS) {
		guard->groups[guard->len++] = (pid_t)group;
		return true;
	}
	return line[0] == '-';
}

static bool take_byte(struct guard *guard, char byte)
{
	if (byte != '\n') {
		guard->line[guard->used++] = byte;
		return guard->used < sizeof(guard->line);
	}
	guard->line[guard->used] = '\0';
	guard->used = 0;
	return guard->line[0] != '\0' && obey(guard, guard->line);
}

static void kill_all(const struct guard *guard)
{
	for (size_t i = 0; i < guard->len; i++) {
		kill(-guard->groups[i], SIGKILL);
	}
}

/* Until the end of the stream. A line that is none ends us too: the owner sees it and starts another. */
static _Noreturn void keep_watch(struct guard *guard, int fd)
{
	char bytes[512];
	for (;;) {
		ssize_t count = read(fd, bytes, sizeof(bytes));
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			kill_all(guard);
			_exit(0);
		}
		for (ssize_t i = 0; i < count; i++) {
			if (!take_byte(guard, bytes[i])) {
				_exit(GATE_EXIT_CANNOT_RUN);
			}
		}
	}
}

_Noreturn void gate_guard(int fd)
{
	static struct guard guard;
	let_go(fd);
	pid_t child = fork();
	if (child < 0) {
		gate_fail(fd, "guard", errno, "fork was refused: %s", strerror(errno));
	}
	if (child > 0) {
		dprintf(fd, GATE_GUARD_READY, (int)child);
		_exit(0);
	}
	setsid(); /* a child leads no group, so it can */
	keep_watch(&guard, fd);
}
