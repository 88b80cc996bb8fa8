#include "client/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "protocol/gate.h"

#define SURE_NS 20000000L /* a stop that lasts so long is no moment of a change of hands */

/* Of the handlers. */
static volatile sig_atomic_t seen, interrupts;
static volatile sig_atomic_t watched; /* the pid that signals are passed on to; 0: nobody */
static int wake[2] = {-1, -1};        /* a pipe: a byte for each signal, as far as it has room */

static void wake_up(void)
{
	int before = errno;
	if (wake[1] >= 0 && write(wake[1], "", 1) < 0) {
		/* Full: it will wake all the same. */
	}
	errno = before;
}

/* What the terminal's driver sends goes to the whole group; what a process sends comes to us alone (kill(2): si_code is 0 or less). */
static void pass_on(int number, siginfo_t *info, void *context)
{
	(void)context;
	seen += number != SIGCONT;
	interrupts += number == SIGINT;
	if (info->si_code <= 0 && watched > 0 && info->si_pid != watched) {
		kill((pid_t)watched, number);
	}
	wake_up();
}

static void notice_child(int number)
{
	(void)number;
	wake_up();
}

void job_catch_signals(void)
{
	/* Caught, not ignored: exec gives the program back what we had been started with. */
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
	static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT};
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) {
			sigaction(numbers[i], &action, NULL);
		}
	}
}

int job_signals_seen(void)
{
	return (int)seen;
}

int job_interrupts_seen(void)
{
	return (int)interrupts;
}

bool job_watch(struct job *job, pid_t pid)
{
	/* Not before: a SIGCHLD that we were started with as ignored is the program's too; but while it is, no child leaves a status. */
	struct sigaction action = {.sa_handler = notice_child, .sa_flags = SA_RESTART};
	sigemptyset(&action.sa_mask);
	job->pid = pid;
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0 || sigaction(SIGCHLD, &action, NULL) != 0) {
		return false;
	}
	job->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	watched = pid;
	return job->pidfd >= 0;
}

void job_finish(struct job *job)
{
	watched = 0;
	if (job->pidfd >= 0) {
		close(job->pidfd);
	}
	job->pidfd = -1;
}

static bool is_stopped(const struct job *job)
{
	siginfo_t info = {0};
	return !job->is_reaped &&
		   waitid(P_PID, (id_t)job->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
		   info.si_pid == job->pid && info.si_code == CLD_STOPPED;
}

/* Of the terminal that our shell gives us: in the background it waits for nobody. */
static bool is_in_foreground(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	bool is_ours = fd >= 0 && tcgetpgrp(fd) == getpgrp();
	if (fd >= 0) {
		close(fd);
	}
	return is_ours;
}

/* SIGTSTP and not SIGSTOP: where nobody could continue us (an orphaned group) the kernel does not stop us. */
static void stop_with(const struct job *job)
{
	if (!is_stopped(job) || !is_in_foreground()) {
		return;
	}
	nanosleep(&(struct timespec){.tv_nsec = SURE_NS}, NULL);
	if (is_stopped(job)) {
		raise(SIGTSTP);
		kill(job->pid, SIGCONT);
	}
}

static void drain_wakes(void)
{
	char bytes[64];
	while (read(wake[0], bytes, sizeof(bytes)) > 0) {
	}
}

void job_wait(struct job *job, int fd, int timeout_ms)
{
	struct pollfd fds[] = {{.fd = job->is_reaped ? -1 : job->pidfd, .events = POLLIN},
		{.fd = fd, .events = POLLIN}, {.fd = wake[0], .events = POLLIN}};
	poll(fds, 3, timeout_ms);
	if ((fds[2].revents & POLLIN) != 0) {
		drain_wakes();
		stop_with(job);
	}
}

bool job_reap(struct job *job, bool must_wait)
{
	while (!job->is_reaped) {
		pid_t pid = waitpid(job->pid, &job->wait_status, must_wait ? 0 : WNOHANG);
		if (pid == job->pid) {
			job->is_reaped = true;
		} else if (pid < 0 && errno == ECHILD) {
			job->wait_status = GATE_EXIT_NO_GO << 8;
			job->is_reaped = true;
		} else if (pid == 0 || errno != EINTR) {
			break;
		}
	}
	watched = job->is_reaped ? 0 : watched;
	return job->is_reaped;
}

int job_shell_status(const struct job *job)
{
	return WIFSIGNALED(job->wait_status) ? 128 + WTERMSIG(job->wait_status)
										 : WEXITSTATUS(job->wait_status);
}
