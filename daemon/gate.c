/*
 * profd-gate: the contract is protocol/gate.h. It becomes the target, so it uses nothing but libc and the words of that header, allocates
 * nothing, and leaves no trace in the process that it hands over.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/gate.h"

#define DEFAULT_PATH "/bin:/usr/bin"

struct options {
	int fd;
	bool new_group, die_with_parent, keep_inherited;
	const char *cwd, *umask_text, *nofile, *profiler;
	char **argv; /* the target's */
};

/* Sends the failed line and exits. Control characters would end the line or confuse a terminal. */
static _Noreturn void fail(int fd, const char *stage, int errno_value, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static _Noreturn void fail(int fd, const char *stage, int errno_value, const char *format, ...)
{
	char line[GATE_LINE_BYTES];
	size_t used = (size_t)snprintf(line, sizeof(line), "failed %s %d ", stage, errno_value);
	size_t room = sizeof(line) - used - 1;
	va_list args;
	va_start(args, format);
	int wanted = vsnprintf(line + used, room, format, args);
	va_end(args);
	size_t end = used + (wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1);
	for (size_t i = used; i < end; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
			line[i] = '?';
		}
	}
	line[end++] = '\n';
	ssize_t sent = fd < 0 ? write(STDERR_FILENO, line, end) : send(fd, line, end, MSG_NOSIGNAL);
	(void)sent; /* nobody is left to be told */
	bool not_found = strcmp(stage, "program") == 0 && errno_value == ENOENT;
	_exit(not_found ? GATE_EXIT_NOT_FOUND : GATE_EXIT_CANNOT_RUN);
}

/* A whole decimal or octal number; false for anything else. */
static bool number(const char *text, int base, unsigned long *value)
{
	char *end;
	errno = 0;
	*value = strtoul(text, &end, base);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

/* The value of an option, or the end. */
static const char *value_of(int fd, char **argv, int *i)
{
	if (argv[*i + 1] == NULL) {
		fail(fd, "arguments", EINVAL, "%s needs a value", argv[*i]);
	}
	return argv[++*i];
}

static void read_option(struct options *options, char **argv, int *i)
{
	const char *name = argv[*i];
	if (strcmp(name, "--fd") == 0) {
		unsigned long fd;
		const char *text = value_of(options->fd, argv, i);
		if (!number(text, 10, &fd) || fd < 3 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0) {
			fail(-1, "arguments", EBADF, "--fd %s is no open descriptor above 2", text);
		}
		options->fd = (int)fd;
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
		fail(options->fd, "arguments", EINVAL, "profd-gate does not know %s", name);
	}
}

static void read_options(struct options *options, char **argv)
{
	int i = 1;
	for (; argv[0] != NULL && argv[i] != NULL && strcmp(argv[i], "--") != 0; i++) {
		read_option(options, argv, &i);
	}
	if (options->fd < 0) {
		fail(-1, "arguments", EINVAL, "profd-gate is started by profd and profctl, with --fd");
	}
	if (argv[i] == NULL || argv[i + 1] == NULL || argv[i + 1][0] == '\0') {
		fail(options->fd, "arguments", EINVAL, "there is no program to run behind --");
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

static void reset_signals(void)
{
	reset_dispositions(1, 64);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void close_others(int fd)
{
	bool below = fd == 3 || syscall(SYS_close_range, 3u, (unsigned)fd - 1, 0u) == 0;
	if (below && syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0u) == 0) {
		return;
	}
	/* Before Linux 5.9, or refused by a filter. */
	struct rlimit limit;
	int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur
																			  : 65536;
	for (int other = 3; other < end; other++) {
		if (other != fd) {
			close(other);
		}
	}
}

/* A parent that went before the death signal was set shows by another parent, or by the end of the socket. */
static void die_with_parent(int fd, pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
		fail(fd, "parent", errno, "PR_SET_PDEATHSIG was refused: %s", strerror(errno));
	}
	struct pollfd owner = {.fd = fd};
	if (getppid() != parent || (poll(&owner, 1, 0) == 1 && (owner.revents & POLLHUP) != 0)) {
		_exit(GATE_EXIT_NO_GO);
	}
}

static void restore_umask(int fd, const char *text)
{
	unsigned long bits;
	if (!number(text, 8, &bits) || bits > 0777) {
		fail(fd, "arguments", EINVAL, "--umask %s is no octal number up to 777", text);
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
		fail(fd, "arguments", EINVAL, "--nofile %s is not SOFT:HARD", text);
	}
	memcpy(soft, text, length);
	soft[length] = '\0';
	if (!number(soft, 10, &soft_value) || !number(colon + 1, 10, &hard_value)) {
		fail(fd, "arguments", EINVAL, "--nofile %s is not SOFT:HARD", text);
	}
	struct rlimit limit = {.rlim_cur = soft_value, .rlim_max = hard_value};
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
		fail(fd, "nofile", errno, "the limit of open files cannot be set to %s: %s", text,
			strerror(errno));
	}
}

static void name_profiler(int fd, const char *text)
{
	unsigned long pid;
	if (!number(text, 10, &pid) || pid == 0 || pid > INT_MAX) {
		fail(fd, "arguments", EINVAL, "--profiler %s is no process id", text);
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
		fail(fd, "cwd", ENOENT,
			"the working directory %s does not exist: make it, or choose another", cwd);
	case ENOTDIR:
		fail(
			fd, "cwd", ENOTDIR, "the working directory %s is not a directory: choose another", cwd);
	case EACCES:
		fail(fd, "cwd", EACCES,
			"the working directory %s may not be entered: check the permissions of it and the "
			"directories "
			"above it",
			cwd);
	default:
		fail(fd, "cwd", errno, "cannot change to the working directory %s: %s", cwd,
			strerror(errno));
	}
}

/* 0 when path looks executable, else the errno that execve would give, except EISDIR, which it does not know. */
static int check(const char *path)
{
	struct stat status;
	if (stat(path, &status) != 0) {
		return errno == ENOTDIR ? ENOENT : errno;
	}
	if (S_ISDIR(status.st_mode)) {
		return EISDIR;
	}
	if (!S_ISREG(status.st_mode)) {
		return EACCES;
	}
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static _Noreturn void explain_program(int fd, const char *path, int errno_value)
{
	struct stat status;
	switch (errno_value) {
	case ENOENT:
		fail(fd, "program", ENOENT, "program %s does not exist: check its path", path);
	case EISDIR:
		fail(fd, "program", EISDIR, "%s is a directory: name the program in it", path);
	case EACCES:
		if (stat(path, &status) != 0) {
			fail(fd, "program", EACCES,
				"program %s cannot be reached: a directory of its path may not be entered", path);
		}
		if (!S_ISREG(status.st_mode)) {
			fail(fd, "program", EACCES, "%s is not a regular file: name a program", path);
		}
		if ((status.st_mode & 0111) == 0) {
			fail(fd, "program", EACCES, "program %s is not executable: chmod +x would make it so",
				path);
		}
		fail(fd, "program", EACCES,
			"program %s may not be executed by this user: check its permissions, and that its file "
			"system "
			"is not mounted noexec",
			path);
	default:
		fail(fd, "program", errno_value, "program %s cannot be looked at: %s", path,
			strerror(errno_value));
	}
}

/*
 * The first executable file of that name in PATH, as execvp(3) searches: an empty component is the current
 * directory; what may not be executed is passed over, and remembered when nothing better comes.
 */
static void search(int fd, const char *name, char *path)
{
	const char *folders = getenv("PATH");
	if (folders == NULL) {
		folders = DEFAULT_PATH;
	}
	char refused[PATH_MAX] = "";
	struct stat status;
	for (const char *folder = folders;;) {
		const char *end = strchrnul(folder, ':');
		int length = (int)(end - folder < PATH_MAX ? end - folder : PATH_MAX);
		int wanted =
			snprintf(path, PATH_MAX, "%.*s%s%s", length, folder, length > 0 ? "/" : "./", name);
		if (wanted > 0 && wanted < PATH_MAX) {
			int problem = check(path);
			if (problem == 0) {
				return;
			}
			/* A closed folder of PATH hides whether the name is in it: only a file that is there counts. */
			if (problem == EACCES && refused[0] == '\0' && stat(path, &status) == 0) {
				memcpy(refused, path, (size_t)wanted + 1);
			}
		}
		if (*end == '\0') {
			break;
		}
		folder = end + 1;
	}
	if (refused[0] != '\0') {
		explain_program(fd, refused, EACCES);
	}
	fail(fd, "program", ENOENT,
		"program %s was not found in PATH %s: give its full path, or set PATH in env", name,
		folders);
}

static void find_program(int fd, const char *name, char *path)
{
	if (strchr(name, '/') == NULL) {
		search(fd, name, path);
		return;
	}
	if (strlen(name) >= PATH_MAX) {
		fail(
			fd, "program", ENAMETOOLONG, "the program's path has more than %d bytes", PATH_MAX - 1);
	}
	strcpy(path, name);
	int problem = check(path);
	if (problem != 0) {
		explain_program(fd, path, problem);
	}
}

/* Waits for "go\n"; anything else is an owner that is gone or changed its mind. */
static void wait_for_go(int fd)
{
	const char *expected = GATE_GO;
	while (*expected != '\0') {
		char byte;
		ssize_t count = recv(fd, &byte, 1, 0);
		if (count < 0 && errno == EAGAIN) {
			struct pollfd owner = {.fd = fd, .events = POLLIN};
			poll(&owner, 1, -1);
		} else if (count < 0 && errno == EINTR) {
			continue;
		} else if (count != 1 || byte != *expected++) {
			_exit(GATE_EXIT_NO_GO);
		}
	}
}

/* The interpreter's path from a "#!" line. */
static bool script_interpreter(const char *head, char *interpreter)
{
	if (head[0] != '#' || head[1] != '!') {
		return false;
	}
	const char *start = head + 2 + strspn(head + 2, " \t");
	size_t length = strcspn(start, " \t\n");
	memcpy(interpreter, start, length);
	interpreter[length] = '\0';
	return true;
}

/* The dynamic loader's path from PT_INTERP (elf(5)). */
static bool elf_interpreter(
	int file, const char *head, size_t head_bytes, char *interpreter, size_t bytes)
{
	Elf64_Ehdr header;
	if (head_bytes < sizeof(header) || memcmp(head, ELFMAG, SELFMAG) != 0 ||
		head[EI_CLASS] != ELFCLASS64) {
		return false;
	}
	memcpy(&header, head, sizeof(header));
	for (unsigned i = 0; i < header.e_phnum && i < 64; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header.e_phoff + i * sizeof(segment));
		if (pread(file, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment)) {
			return false;
		}
		if (segment.p_type == PT_INTERP && segment.p_filesz > 0 && segment.p_filesz < bytes) {
			ssize_t count = pread(file, interpreter, segment.p_filesz, (off_t)segment.p_offset);
			interpreter[count > 0 ? count : 0] = '\0';
			return count > 0;
		}
	}
	return false;
}

/* execve says ENOENT for a file that is there when what should load it is not. */
static void explain_interpreter(int fd, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[256] = "";
	ssize_t count = file >= 0 ? read(file, head, sizeof(head) - 1) : -1;
	char interpreter[PATH_MAX];
	if (count > 0 && script_interpreter(head, interpreter)) {
		if (strchr(interpreter, '\r') != NULL) {
			fail(fd, "exec", ENOENT,
				"the first line of script %s ends with a carriage return: convert it to Unix line "
				"ends",
				path);
		}
		fail(fd, "exec", ENOENT,
			"the interpreter %s of script %s does not exist: install it, or correct the first line",
			interpreter, path);
	}
	if (count > 0 && elf_interpreter(file, head, (size_t)count, interpreter, sizeof(interpreter))) {
		fail(fd, "exec", ENOENT,
			"the dynamic loader %s of program %s does not exist: it was built for another system",
			interpreter, path);
	}
}

static _Noreturn void explain_exec(int fd, const char *path, int errno_value)
{
	switch (errno_value) {
	case ENOENT:
		if (check(path) != 0) {
			explain_program(fd, path, ENOENT);
		}
		explain_interpreter(fd, path);
		fail(fd, "exec", ENOENT, "program %s needs a file to be loaded that does not exist", path);
	case ENOEXEC:
		fail(fd, "exec", ENOEXEC,
			"%s is no program for this machine: it has no #! line and no binary format that the "
			"kernel "
			"knows",
			path);
	case EACCES:
		fail(fd, "exec", EACCES,
			"program %s may not be executed: check the permissions of it and of its interpreter",
			path);
	case E2BIG:
		fail(fd, "exec", E2BIG,
			"the arguments and the environment of %s are too long for the kernel: pass them in a "
			"file",
			path);
	case ETXTBSY:
		fail(fd, "exec", ETXTBSY,
			"program %s is still open for writing: wait for the build to finish", path);
	case ELOOP:
		fail(fd, "exec", ELOOP, "the interpreters of script %s are scripts, too deeply nested",
			path);
	default:
		fail(fd, "exec", errno_value, "program %s cannot be executed: %s", path,
			strerror(errno_value));
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
		close_others(fd);
	}
	if (options->new_group && setpgid(0, 0) != 0) {
		fail(fd, "group", errno, "setpgid was refused: %s", strerror(errno));
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
	prepare(&options, parent);

	static char path[PATH_MAX];
	find_program(options.fd, options.argv[0], path);
	if (send(options.fd, GATE_READY, strlen(GATE_READY), MSG_NOSIGNAL) < 0) {
		return GATE_EXIT_NO_GO;
	}
	wait_for_go(options.fd);
	execve(path, options.argv, environ);
	explain_exec(options.fd, path, errno);
}
