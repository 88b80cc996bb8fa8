/*
 * profd-gate: the contract is protocol/gate.h. It becomes the target, so it uses nothing but libc and the words of that header, allocates
 * nothing, and leaves no trace in the process that it hands over.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate_guard.h"
#include "gate_orders.h"
#include "gate_program.h"
#include "gate_words.h"
#include "protocol/gate.h"

struct options {
	int fd;
	bool guard, new_group, new_terminal, die_with_parent, keep_inherited;
	const char *cwd, *umask_text, *nofile, *profiler;
	char **argv; /* the target's */
};

/* The value of an option, or the end. */
static const char *value_of(int fd, char **argv, int *i)
{
	if (argv[*i + 1] == NULL) {
		gate_fail(fd, "arguments", EINVAL, "%s needs a value", argv[*i]);
	}
	return argv[++*i];
}

static void read_option(struct options *options, char **argv, int *i)
{
	const char *name = argv[*i];
	if (strcmp(name, "--fd") == 0) {
		unsigned long fd;
		const char *text = value_of(options->fd, argv, i);
		if (!gate_number(text, 10, &fd) || fd < 3 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0) {
			gate_fail(-1, "arguments", EBADF, "--fd %s is no open descriptor above 2", text);
		}
		options->fd = (int)fd;
	} else if (strcmp(name, "--guard") == 0) {
		options->guard = true;
	} else if (strcmp(name, "--new-terminal") == 0) {
		options->new_terminal = true;
	} else if (strcmp(name, "--new-group") == 0) {
		options->new_group = true;
	} else if (strcmp(name, "--die-with-parent") == 0) {
		options->die_with_parent = true;
	} else if (strcmp(name, "--keep-inherited") == 0) {
		options->keep_inherited = true;
	} else if (strcmp(name, "--cwd") == 0) {
		options->cwd = value_of(options->fd, argv, i);
	} else if (strcmp(name, "--umask") == 0) {
		options->umask_text = value_of(options->fd, argv, i);
	} else if (strcmp(name, "--nofile") == 0) {
		options->nofile = value_of(options->fd, argv, i);
	} else if (strcmp(name, "--profiler") == 0) {
		options->profiler = value_of(options->fd, argv, i);
	} else {
		gate_fail(options->fd, "arguments", EINVAL, "profd-gate does not know %s", name);
	}
}

static void read_options(struct options *options, char **argv)
{
	int i = 1;
	for (; argv[0] != NULL && argv[i] != NULL && strcmp(argv[i], "--") != 0; i++) {
		read_option(options, argv, &i);
	}
	if (options->fd < 0) {
		gate_fail(-1, "arguments", EINVAL, "profd-gate is started by profd and profctl, with --fd");
	}
	if (options->guard) {
		return;
	}
	if (argv[i] == NULL || argv[i + 1] == NULL || argv[i + 1][0] == '\0') {
		gate_fail(options->fd, "arguments", EINVAL, "there is no program to run behind --");
	}
	options->argv = argv + i + 1;
}

static void reset_dispositions(int first, int last)
{
	/* The kernel's struct sigaction, all zero: SIG_DFL, no flags, no mask. */
	static const unsigned long defaults[8];
	for (int signal = first; signal <= last; signal++) {
		syscall(SYS_rt_sigaction, signal, defaults, NULL, 8);
	}
}

/*
 * What is typed on a held program's terminal waits for the program, but for the keys that send signals: nobody is there whom they could
 * be meant for.
 */
static void ignore_keys(void)
{
	static const unsigned long ignored[8] = {1 /* SIG_IGN */};
	static const int keys[] = {SIGINT, SIGQUIT, SIGTSTP};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		syscall(SYS_rt_sigaction, keys[i], ignored, NULL, 8);
	}
}

static void reset_signals(void)
{
	reset_dispositions(1, 64);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A parent that went before the death signal was set shows by another parent, or by the end of the socket. */
static void die_with_parent(int fd, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
		gate_fail(fd, "parent", errno, "PR_SET_PDEATHSIG was refused: %s", strerror(errno));
	}
	struct pollfd owner = {.fd = fd};
	if (getppid() != parent || (poll(&owner, 1, 0) == 1 && (owner.revents & POLLHUP) != 0)) {
		_exit(GATE_EXIT_NO_GO);
	}
}

static void restore_umask(int fd, const char *text)
{
	unsigned long bits;
	if (!gate_number(text, 8, &bits) || bits > 0777) {
		gate_fail(fd, "arguments", EINVAL, "--umask %s is no octal number up to 777", text);
	}
	umask((mode_t)bits);
}

static void restore_nofile(int fd, const char *text)
{
	char soft[32];
	const char *colon = strchr(text, ':');
	size_t length = colon != NULL ? (size_t)(colon - text) : 0;
	unsigned long soft_value, hard_value;
	if (colon == NULL || length >= sizeof(soft)) {
		gate_fail(fd, "arguments", EINVAL, "--nofile %s is not SOFT:HARD", text);
	}
	memcpy(soft, text, length);
	soft[length] = '\0';
	if (!gate_number(soft, 10, &soft_value) || !gate_number(colon + 1, 10, &hard_value)) {
		gate_fail(fd, "arguments", EINVAL, "--nofile %s is not SOFT:HARD", text);
	}
	struct rlimit limit = {.rlim_cur = soft_value, .rlim_max = hard_value};
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
		gate_fail(fd, "nofile", errno, "the limit of open files cannot be set to %s: %s", text,
			strerror(errno));
	}
}

static void name_profiler(int fd, const char *text)
{
	unsigned long pid;
	if (!gate_number(text, 10, &pid) || pid == 0 || pid > INT_MAX) {
		gate_fail(fd, "arguments", EINVAL, "--profiler %s is no process id", text);
	}
	/* EINVAL where there is no Yama: then nothing needs to be allowed. */
	prctl(PR_SET_PTRACER, pid, 0, 0, 0);
}

static void enter_cwd(int fd, const char *cwd)
{
	if (chdir(cwd) == 0) {
		return;
	}
	switch (errno) {
	case ENOENT:
		gate_fail(fd, "cwd", ENOENT,
			"the working directory %s does not exist: make it, or choose another", cwd);
	case ENOTDIR:
		gate_fail(
			fd, "cwd", ENOTDIR, "the working directory %s is not a directory: choose another", cwd);
	case EACCES:
		gate_fail(fd, "cwd", EACCES,
			"the working directory %s may not be entered: check the permissions of it and the "
			"directories "
			"above it",
			cwd);
	default:
		gate_fail(fd, "cwd", errno, "cannot change to the working directory %s: %s", cwd,
			strerror(errno));
	}
}

/* The terminal is standard input. Its group is the session's first one, and the terminal's foreground. */
static void take_terminal(int fd)
{
	if (setsid() < 0) {
		gate_fail(fd, "terminal", errno, "setsid was refused: %s", strerror(errno));
	}
	if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) {
		gate_fail(fd, "terminal", errno, "standard input cannot be the program's terminal: %s",
			strerror(errno));
	}
}

static void prepare(const struct options *options, pid_t parent)
{
	int fd = options->fd;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	/* libc keeps these two for itself, refuses to touch them, and its posix_spawn has them ignored: exec would keep that. */
	reset_dispositions(32, 33);
	if (!options->keep_inherited) {
		reset_signals();
		gate_close_others(fd);
	}
	if (options->new_group && setpgid(0, 0) != 0) {
		gate_fail(fd, "group", errno, "setpgid was refused: %s", strerror(errno));
	}
	if (options->new_terminal) {
		ignore_keys();
		take_terminal(fd);
	}
	if (options->die_with_parent) {
		die_with_parent(fd, parent);
	}
	if (options->umask_text != NULL) {
		restore_umask(fd, options->umask_text);
	}
	if (options->nofile != NULL) {
		restore_nofile(fd, options->nofile);
	}
	if (options->profiler != NULL) {
		name_profiler(fd, options->profiler);
	}
	if (options->cwd != NULL) {
		enter_cwd(fd, options->cwd);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	pid_t parent = getppid();
	struct options options = {.fd = -1};
	read_options(&options, argv);
	if (options.guard) {
		gate_guard(options.fd);
	}
	prepare(&options, parent);

	static char path[PATH_MAX];
	gate_find_program(options.fd, options.argv[0], path);
	if (send(options.fd, GATE_READY, strlen(GATE_READY), MSG_NOSIGNAL) < 0) {
		return GATE_EXIT_NO_GO;
	}
	char **environment = gate_take_orders(options.fd);
	if (options.new_terminal) {
		reset_dispositions(1, 31);
	}
	execve(path, options.argv, environment);
	gate_explain_exec(options.fd, path, errno);
}
