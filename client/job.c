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
static volatile sig_atomic_t seen, interrupts, terminal_interrupts;
static volatile sig_atomic_t watched;         /* the pid that signals are passed on to; 0: nobody */
static volatile sig_atomic_t early;           /* a bit for each that came before it was */
static volatile sig_atomic_t witness_fd = -1; /* who knows which of them came to us alone, */
static volatile sig_atomic_t witness_pid;     /* and may have been stopped with all others */
static volatile sig_atomic_t leads_session;
static volatile sig_atomic_t ignored; /* a bit for each that we were started with as ignored */
static bool is_interrupted;           /* the program: it died of SIGINT */
static int wake[2] = {-1, -1};        /* a pipe: a byte for each signal, as far as it has room */

/* What would end us or stop us by default, but for faults and what cannot be caught; and SIGCONT. Of SIGTTIN and SIGTTOU the kernel sends one after the other to who catches them. */
static const int passed[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM,
	SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGPIPE, SIGTSTP, SIGCONT};

#define PASSED_COUNT (sizeof(passed) / sizeof(passed[0]))

static void wake_up(void)
{
	int before = errno;
	if (wake[1] >= 0 && write(wake[1], "", 1) < 0) {
		/* Full: it will wake all the same. */
	}
	errno = before;
}

static bool is_of_the_kernel(const siginfo_t *info)
{
	return info->si_code > 0; /* kill(2) */
}

/* What the terminal's driver sends goes to the whole group, but when it hangs up: then the session's leader alone gets both of these (tty_ioctl(4), credentials(7)). */
static bool is_hangup(int number, const siginfo_t *info)
{
	return is_of_the_kernel(info) && leads_session != 0 && (number == SIGHUP || number == SIGCONT);
}

/* False: it was for us alone, and there is nobody who would pass it on. */
static bool ask_witness(int number, pid_t sender)
{
	const struct witness witness = {.pid = (pid_t)witness_pid, .fd = (int)witness_fd};
	return witness_ask(&witness, number, sender);
}

static void pass_on(int number, const siginfo_t *info)
{
	if (watched <= 0) {
		early |= 1 << number;
	} else if (is_hangup(number, info) || (!is_of_the_kernel(info) && info->si_pid != watched &&
											  !ask_witness(number, info->si_pid))) {
		kill((pid_t)watched, number);
	}
}

static bool ends(int number)
{
	return number != SIGCONT && number != SIGTSTP && number != SIGPIPE;
}

/* Delivered when its handler has returned. */
static void stop_by_default(void)
{
	int before = errno;
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigaction(SIGTSTP, &action, NULL);
	kill(getpid(), SIGTSTP);
	errno = before;
}

static void take_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (!is_of_the_kernel(info) && info->si_pid == getpid()) {
		return; /* job_end_group, or what we write nobody reads any more */
	}
	if ((ignored & 1 << number) != 0) {
		pass_on(number, info); /* to us it is nothing */
		return;
	}
	if (number == SIGTSTP && watched <= 0) {
		stop_by_default(); /* there is no program whose stop we could follow */
		return;
	}
	seen += ends(number);
	interrupts += number == SIGINT;
	terminal_interrupts += number == SIGINT && is_of_the_kernel(info);
	pass_on(number, info);
	wake_up();
}

static void notice_child(int number)
{
	(void)number;
	wake_up();
}

static void catch_those_with(void (*disposition)(int))
{
	struct sigaction action = {.sa_sigaction = take_signal, .sa_flags = SA_RESTART | SA_SIGINFO};
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < PASSED_COUNT; i++) {
		struct sigaction old;
		if (sigaction(passed[i], NULL, &old) == 0 && old.sa_handler == disposition) {
			ignored |= disposition == SIG_IGN ? 1 << passed[i] : 0;
			sigaction(passed[i], &action, NULL);
		}
	}
}

void job_catch_signals(void)
{
	leads_session = getsid(0) == getpid();
	catch_those_with(SIG_DFL);
}

int job_signals_seen(void)
{
	return (int)seen;
}

int job_interrupts_seen(void)
{
	return (int)interrupts;
}

int job_terminal_interrupts_seen(void)
{
	return (int)terminal_interrupts;
}

/* What came while the program was being started, whether it had it or not: better twice than never. */
static void pass_on_early(void)
{
	for (size_t i = 0; i < PASSED_COUNT; i++) {
		if ((early & 1 << passed[i]) != 0) {
			kill((pid_t)watched, passed[i]);
		}
	}
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
	if (job->pidfd >= 0 && witness_start(&job->witness, job->pidfd)) {
		witness_fd = job->witness.fd;
		witness_pid = job->witness.pid;
	}
	catch_those_with(SIG_IGN); /* the program has its own handlers for them, or ignores them too */
	watched = pid;
	pass_on_early();
	return job->pidfd >= 0;
}

void job_end_group(void)
{
	kill(0, SIGTERM);
}

void job_finish(struct job *job)
{
	watched = 0;
	witness_fd = -1;
	witness_pid = 0;
	witness_finish(&job->witness);
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

/* SIGTSTP and not SIGSTOP: where no shell could continue us (an orphaned group) the kernel does not stop us, and the program alone is. */
static void stop_with(const struct job *job)
{
	if (!is_stopped(job) || !is_in_foreground()) {
		return;
	}
	nanosleep(&(struct timespec){.tv_nsec = SURE_NS}, NULL);
	if (is_stopped(job)) {
		struct sigaction action = {.sa_handler = SIG_DFL}, before;
		sigaction(SIGTSTP, &action, &before);
		raise(SIGTSTP); /* who continues us continues the group, or it is passed on */
		sigaction(SIGTSTP, &before, NULL);
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
			is_interrupted = WIFSIGNALED(job->wait_status) && WTERMSIG(job->wait_status) == SIGINT;
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

void job_die_with_it(int status)
{
	if (is_interrupted && status == 128 + SIGINT) {
		struct sigaction action = {.sa_handler = SIG_DFL};
		sigaction(SIGINT, &action, NULL);
		raise(SIGINT);
	}
}
