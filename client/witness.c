#include "client/witness.h"
#include "protocol/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the child has its descriptors, when it has closed all others. */
enum { ASKED_FD, PROGRAM_FD, SIGNALS_FD, FDS };

/* What ps and pgrep show of a process (proc_pid_cmdline(5)). */
static struct {
	char *begin;
	size_t bytes;
} arguments;

struct question {
	int number;
	pid_t sender;
};

/* --- in the child: async-signal-safe functions only --- */

/* Of each signal who sent the last one that we got and were not asked about. */
static struct {
	bool is_there;
	pid_t sender;
	uint64_t at_ms;
} got[NSIG];

static void take_signals(void)
{
	struct signalfd_siginfo info;
	while (read(SIGNALS_FD, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* What the kernel sends by itself nobody is asked about. */
		if (info.ssi_signo < NSIG && info.ssi_code <= 0) {
			got[info.ssi_signo].is_there = true;
			got[info.ssi_signo].sender = (pid_t)info.ssi_pid;
			got[info.ssi_signo].at_ms = clock_monotonic_ms();
		}
	}
}

static bool is_the_same(const struct question *question)
{
	return got[question->number].is_there && got[question->number].sender == question->sender &&
		   clock_monotonic_ms() - got[question->number].at_ms <= WITNESS_MEMORY_MS;
}

/* Waits for it if need be. */
static bool has_got(const struct question *question)
{
	struct pollfd fd = {.fd = SIGNALS_FD, .events = POLLIN};
	uint64_t until_ms = clock_monotonic_ms() + WITNESS_PATIENCE_MS;
	for (;;) {
		take_signals();
		if (is_the_same(question)) {
			got[question->number].is_there = false;
			return true;
		}
		int64_t left_ms = (int64_t)(until_ms - clock_monotonic_ms());
		if (left_ms <= 0 || poll(&fd, 1, (int)left_ms) <= 0) {
			return false;
		}
	}
}

/* False: nobody can ask any more. */
static bool answer(void)
{
	struct question question;
	if (recv(ASKED_FD, &question, sizeof(question), 0) != (ssize_t)sizeof(question)) {
		return false;
	}
	if (!has_got(&question)) {
		syscall(SYS_pidfd_send_signal, PROGRAM_FD, question.number, NULL, 0);
	}
	return true;
}

static void serve(void)
{
	struct pollfd fds[] = {
		{.fd = ASKED_FD, .events = POLLIN}, {.fd = SIGNALS_FD, .events = POLLIN}};
	do {
		/* EINTR: it was stopped and goes on (signal(7)). */
		while (poll(fds, 2, -1) < 0) {
		}
		take_signals();
	} while (fds[0].revents == 0 || answer());
}

/* Who signals all processes that are called profctl means us, not the program; the witness is not one of them. */
static void change_name(void)
{
	prctl(PR_SET_NAME, WITNESS_NAME);
	if (arguments.bytes > 0) {
		memset(arguments.begin, 0, arguments.bytes);
		memcpy(arguments.begin, WITNESS_NAME,
			arguments.bytes < sizeof(WITNESS_NAME) ? arguments.bytes - 1
												   : sizeof(WITNESS_NAME) - 1);
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
	change_name();
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

void witness_know_arguments(int argc, char **argv)
{
	arguments.begin = argv[0];
	arguments.bytes =
		argc > 0 ? (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]) : 0;
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

static void wake_if_stopped(pid_t pid)
{
	siginfo_t info = {0};
	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) {
		kill(pid, SIGCONT);
	}
}

bool witness_ask(const struct witness *witness, int number, pid_t sender)
{
	const struct question question = {.number = number, .sender = sender};
	int before = errno;
	if (witness->pid > 0) {
		wake_if_stopped(witness->pid);
	}
	bool is_asked = witness->fd >= 0 && send(witness->fd, &question, sizeof(question),
											MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
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
