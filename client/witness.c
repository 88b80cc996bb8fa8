#include "client/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the child has its descriptors, when it has closed all others. */
enum { ASKED_FD, PROGRAM_FD, SIGNALS_FD, FDS };

struct question {
	int number;
	pid_t sender;
};

/* --- in the child: async-signal-safe functions only --- */

/* Of each signal who sent the last one that we got and were not asked about. */
static struct {
	bool is_there;
	pid_t sender;
} got[NSIG];

static void take_signals(void)
{
	struct signalfd_siginfo info;
	while (read(SIGNALS_FD, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* What the kernel sends by itself nobody is asked about. */
		if (info.ssi_signo < NSIG && info.ssi_code <= 0) {
			got[info.ssi_signo].is_there = true;
			got[info.ssi_signo].sender = (pid_t)info.ssi_pid;
		}
	}
}

/* Waits for it if need be. */
static bool has_got(const struct question *question)
{
	struct pollfd fd = {.fd = SIGNALS_FD, .events = POLLIN};
	for (int is_late = 0; is_late < 2; is_late++) {
		take_signals();
		if (got[question->number].is_there && got[question->number].sender == question->sender) {
			got[question->number].is_there = false;
			return true;
		}
		if (is_late == 0) {
			poll(&fd, 1, WITNESS_PATIENCE_MS);
		}
	}
	return false;
}

static void serve(void)
{
	struct question question;
	while (recv(ASKED_FD, &question, sizeof(question), 0) == (ssize_t)sizeof(question)) {
		if (!has_got(&question)) {
			syscall(SYS_pidfd_send_signal, PROGRAM_FD, question.number, NULL, 0);
		}
	}
}

/* Nothing of ours stays open in it: who reads what the program writes sees its end. */
static void become(int asked, int pidfd, int signals)
{
	int from[FDS] = {[ASKED_FD] = asked, [PROGRAM_FD] = pidfd, [SIGNALS_FD] = signals};
	for (int i = 0; i < FDS; i++) {
		from[i] = fcntl(from[i], F_DUPFD, FDS);
	}
	for (int i = 0; i < FDS; i++) {
		if (dup2(from[i], i) != i) {
			_exit(1);
		}
	}
	close_range(FDS, ~0u, 0);
	prctl(PR_SET_NAME, "profctl-witness");
	serve();
	_exit(0);
}

/* --- the parent's --- */

static pid_t fork_blocked(int asked, int pidfd)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t pid = signals >= 0 ? fork() : -1;
	if (pid == 0) {
		become(asked, pidfd, signals);
	}
	if (signals >= 0) {
		close(signals);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid;
}

bool witness_start(struct witness *witness, int pidfd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return false;
	}
	pid_t pid = fork_blocked(pair[1], pidfd);
	close(pair[1]);
	if (pid <= 0) {
		close(pair[0]);
		return false;
	}
	*witness = (struct witness){.pid = pid, .fd = pair[0]};
	return true;
}

bool witness_ask(int fd, int number, pid_t sender)
{
	const struct question question = {.number = number, .sender = sender};
	int before = errno;
	bool is_asked =
		fd >= 0 && send(fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
	errno = before;
	return is_asked;
}

void witness_finish(struct witness *witness)
{
	if (witness->fd >= 0) {
		close(witness->fd);
	}
	if (witness->pid > 0) {
		kill(witness->pid, SIGKILL); /* it may be stopped */
	}
	while (witness->pid > 0 && waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR) {
	}
	*witness = (struct witness)WITNESS_NONE;
}
