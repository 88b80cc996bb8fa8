#include "protocol/clock.h"
#include "protocol/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GATE_FD        3  /* the gate's end, in the gate */
#define MAX_GATE_WORDS 20 /* before the target's own */

/* The gate's command line. Text lives as long as the struct. */
struct words {
	const char **argv; /* owned */
	size_t len;
	char fd_text[16], umask_text[24], nofile[64], profiler[16];
};

static void add(struct words *words, const char *name, const char *value)
{
	words->argv[words->len++] = name;
	if (value != NULL) {
		words->argv[words->len++] = value;
	}
}

static bool build_words(
	struct words *words, const struct gate_options *options, int gate_fd, struct error *err)
{
	size_t count = 0;
	while (options->argv[count] != NULL) {
		count++;
	}
	words->argv = calloc(MAX_GATE_WORDS + count + 1, sizeof(*words->argv));
	if (words->argv == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu arguments", count);
	}
	add(words, options->gate_path, NULL);
	snprintf(words->fd_text, sizeof(words->fd_text), "%d", gate_fd);
	add(words, "--fd", words->fd_text);
	if (options->new_group) {
		add(words, "--new-group", NULL);
	}
	if (options->new_terminal) {
		add(words, "--new-terminal", NULL);
	}
	if (options->die_with_parent) {
		add(words, "--die-with-parent", NULL);
	}
	if (options->keep_inherited) {
		add(words, "--keep-inherited", NULL);
	}
	if (options->cwd != NULL) {
		add(words, "--cwd", options->cwd);
	}
	if (options->umask_bits >= 0) {
		snprintf(words->umask_text, sizeof(words->umask_text), "%lo", options->umask_bits);
		add(words, "--umask", words->umask_text);
	}
	if (options->nofile_soft >= 0 && options->nofile_hard >= 0) {
		snprintf(words->nofile, sizeof(words->nofile), "%ld:%ld", options->nofile_soft,
			options->nofile_hard);
		add(words, "--nofile", words->nofile);
	}
	if (options->profiler_pid > 0) {
		snprintf(words->profiler, sizeof(words->profiler), "%d", (int)options->profiler_pid);
		add(words, "--profiler", words->profiler);
	}
	add(words, "--", NULL);
	memcpy(words->argv + words->len, options->argv, count * sizeof(*options->argv));
	return true;
}

/* The same open file, close-on-exec, under a number of at least lowest. Closes fd. */
static int move_up(int fd, int lowest)
{
	if (fd >= lowest) {
		return fd;
	}
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
	int saved = errno;
	close(fd);
	errno = saved;
	return moved;
}

/*
 * ends[0] is the owner's, ends[1] the gate's. Neither may be 0 to 2, which a program started with closed standard streams
 * would get; and the gate's must not be GATE_FD already: dup2 onto itself leaves it close-on-exec in older libcs.
 */
static bool make_ends(int ends[2], struct error *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
		error_errno(err, "cannot make a socket pair for profd-gate");
		ends[0] = ends[1] = -1;
		return false;
	}
	ends[0] = move_up(ends[0], GATE_FD);
	ends[1] = ends[0] < 0 ? ends[1] : move_up(ends[1], GATE_FD + 1);
	if (ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
		return error_errno(err, "cannot make a socket pair for profd-gate");
	}
	return true;
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0) {
			close(fds[i]);
		}
		fds[i] = -1;
	}
}

/* Copies of the descriptors for 0 to 2, out of the way of each other's final numbers. */
static bool copy_stdio(int copies[3], const int stdio[3], struct error *err)
{
	for (int i = 0; i < 3; i++) {
		if (stdio[i] < 0) {
			continue;
		}
		copies[i] = fcntl(stdio[i], F_DUPFD_CLOEXEC, GATE_FD + 1);
		if (copies[i] < 0) {
			return error_errno(err, "cannot pass descriptor %d to the program", stdio[i]);
		}
	}
	return true;
}

static int add_actions(
	posix_spawn_file_actions_t *actions, const int copies[3], int gate_end, int gate_fd)
{
	for (int i = 0; i < 3; i++) {
		int status = copies[i] < 0 ? 0 : posix_spawn_file_actions_adddup2(actions, copies[i], i);
		if (status != 0) {
			return status;
		}
	}
	return posix_spawn_file_actions_adddup2(actions, gate_end, gate_fd);
}

/*
 * The number of the gate's end in the gate: one that nothing which the target shall inherit has. It is no number of
 * ours either: dup2 onto itself leaves a descriptor close-on-exec in older libcs.
 */
static int choose_gate_fd(const struct gate_options *options, int gate_end)
{
	if (!options->keep_inherited) {
		return GATE_FD;
	}
	int unused = fcntl(gate_end, F_DUPFD_CLOEXEC, GATE_FD + 1);
	if (unused >= 0) {
		close(unused);
	}
	return unused;
}

/* Signals are let through from the first moment; the gate sets their dispositions. The group is made here too, so that a
 * signal to it never comes too early. */
static int add_attributes(posix_spawnattr_t *attributes, const struct gate_options *options)
{
	sigset_t none;
	sigemptyset(&none);
	short flags = 0;
	flags |= options->keep_inherited ? 0 : POSIX_SPAWN_SETSIGMASK;
	flags |= options->new_group ? POSIX_SPAWN_SETPGROUP : 0;
	int status = posix_spawnattr_setsigmask(attributes, &none);
	return status != 0 ? status : posix_spawnattr_setflags(attributes, flags);
}

static int spawn(pid_t *pid, const struct words *words, const struct gate_options *options,
	const int copies[3], int gate_end, int gate_fd)
{
	posix_spawn_file_actions_t actions;
	int status = posix_spawn_file_actions_init(&actions);
	if (status != 0) {
		return status;
	}
	posix_spawnattr_t attributes;
	status = posix_spawnattr_init(&attributes);
	if (status == 0) {
		status = add_actions(&actions, copies, gate_end, gate_fd);
		status = status != 0 ? status : add_attributes(&attributes, options);
		if (status == 0) {
			status = posix_spawn(pid, options->gate_path, &actions, &attributes,
				(char *const *)words->argv, (char *const *)options->env);
		}
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return status;
}

static bool explain_spawn(struct error *err, int status, const char *gate_path)
{
	switch (status) {
	case E2BIG:
		error_set(err, ERROR_LAUNCH_FAILED,
			"the arguments and the environment are too long for the kernel");
		error_detail(err, "e2big");
		return error_hint(err, "pass them in a file");
	case ENOENT:
	case EACCES:
		error_errno_as(err, ERROR_LAUNCH_FAILED, status, "cannot start %s", gate_path);
		return error_hint(err, "install profd-gate there, or name it in the variable PROFD_GATE");
	case EAGAIN:
	case ENOMEM:
		error_errno_as(err, ERROR_LAUNCH_FAILED, status, "cannot start %s", gate_path);
		return error_hint(err, "end some processes, or raise the limits of this user (ulimit -u)");
	default:
		return error_errno_as(err, ERROR_LAUNCH_FAILED, status, "cannot start %s", gate_path);
	}
}

bool gate_start(struct gate *gate, const struct gate_options *options, struct error *err)
{
	struct words words = {0};
	/* The owner's end, the gate's, and the copies for 0 to 2. */
	int fds[5] = {-1, -1, -1, -1, -1};
	if (!make_ends(fds, err) || !copy_stdio(fds + 2, options->stdio, err)) {
		goto fail;
	}
	int gate_fd = choose_gate_fd(options, fds[1]);
	if (gate_fd < 0) {
		error_errno(err, "cannot find a descriptor for profd-gate");
		goto fail;
	}
	if (!build_words(&words, options, gate_fd, err)) {
		goto fail;
	}
	pid_t pid;
	int status = spawn(&pid, &words, options, fds + 2, fds[1], gate_fd);
	if (status != 0) {
		explain_spawn(err, status, options->gate_path);
		goto fail;
	}
	gate->pid = pid;
	gate->fd = fds[0];
	gate->used = 0;
	close_all(fds + 1, 4);
	free(words.argv);
	return true;

fail:
	close_all(fds, 5);
	free(words.argv);
	return false;
}

static enum gate_state failed(struct error *err, const char *detail, const char *message)
{
	error_set(err, ERROR_LAUNCH_FAILED, "%s", message);
	error_detail(err, detail);
	return GATE_FAILED;
}

static enum gate_state died(struct error *err)
{
	failed(err, "gate_died", "profd-gate ended before it became the program");
	error_hint(err, "launch it again; something killed the process before it began");
	return GATE_FAILED;
}

static enum gate_state garbled(struct error *err)
{
	failed(err, "garbled", "profd-gate said something that is not its language");
	error_hint(err, "install profd and profd-gate of the same version");
	return GATE_FAILED;
}

/* The finer names of gate.h for what can go wrong; the stage when it has none. */
static const char *detail_of(const char *stage, int errno_value)
{
	bool program = strcmp(stage, "program") == 0;
	bool exec = strcmp(stage, "exec") == 0;
	if (program && errno_value == ENOENT) {
		return "not_found";
	}
	if (program && errno_value == EISDIR) {
		return "is_directory";
	}
	if (exec && errno_value == ENOENT) {
		return "no_interpreter";
	}
	if ((program || exec) && (errno_value == EACCES || errno_value == ENOEXEC)) {
		return "not_executable";
	}
	return stage;
}

/* "failed STAGE ERRNO MESSAGE" without its line end; line is cut up. */
static enum gate_state read_failed(char *line, struct error *err)
{
	static const char *const stages[] = {"arguments", "group", "terminal", "parent", "nofile",
		"cwd", "program", "environment", "exec"};
	char *stage = line + strlen("failed ");
	char *space = strchr(stage, ' ');
	if (space == NULL) {
		return garbled(err);
	}
	*space = '\0';
	const char *known = NULL;
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		known = strcmp(stage, stages[i]) == 0 ? stages[i] : known;
	}
	char *end;
	errno = 0;
	long errno_value = strtol(space + 1, &end, 10);
	if (known == NULL || end == space + 1 || *end != ' ' || end[1] == '\0' || errno != 0 ||
		errno_value < 0 || errno_value > 4095) {
		return garbled(err);
	}
	return failed(err, detail_of(known, (int)errno_value), end + 1);
}

/* Takes the first line out of the buffer, if a whole one is there. */
static enum gate_state read_line(struct gate *gate, struct error *err)
{
	char *end = memchr(gate->line, '\n', gate->used);
	if (end == NULL) {
		return gate->used == sizeof(gate->line) ? garbled(err) : GATE_WAITING;
	}
	enum gate_state state;
	*end = '\0';
	size_t length = (size_t)(end - gate->line);
	if (strlen(gate->line) != length) {
		state = garbled(err);
	} else if (length + 1 == strlen(GATE_READY) && memcmp(gate->line, GATE_READY, length) == 0) {
		state = GATE_IS_READY;
	} else if (strncmp(gate->line, "failed ", strlen("failed ")) == 0) {
		state = read_failed(gate->line, err);
	} else {
		state = garbled(err);
	}
	gate->used -= length + 1;
	memmove(gate->line, end + 1, gate->used);
	return state;
}

enum gate_state gate_read(struct gate *gate, bool gone, struct error *err)
{
	for (;;) {
		enum gate_state state = read_line(gate, err);
		if (state != GATE_WAITING) {
			return state;
		}
		ssize_t count =
			recv(gate->fd, gate->line + gate->used, sizeof(gate->line) - gate->used, MSG_DONTWAIT);
		if (count > 0) {
			gate->used += (size_t)count;
		} else if (count == 0) {
			return gone && gate->used == 0 ? GATE_RUNNING : died(err);
		} else if (errno == EAGAIN) {
			return GATE_WAITING;
		} else if (errno != EINTR) {
			/* ECONNRESET: it ended with our "go" unread. */
			return died(err);
		}
	}
}

enum gate_state gate_wait(struct gate *gate, bool gone, int timeout_ms, struct error *err)
{
	int64_t deadline = timeout_ms < 0 ? 0 : (int64_t)clock_monotonic_ms() + timeout_ms;
	for (;;) {
		enum gate_state state = gate_read(gate, gone, err);
		if (state != GATE_WAITING) {
			return state;
		}
		int64_t left = timeout_ms < 0 ? -1 : deadline - (int64_t)clock_monotonic_ms();
		if (timeout_ms >= 0 && left <= 0) {
			return GATE_WAITING;
		}
		struct pollfd poller = {.fd = gate->fd, .events = POLLIN};
		poll(&poller, 1, (int)left);
	}
}

/* False: it reads no more. */
static bool send_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t count = send(fd, bytes, len, MSG_NOSIGNAL);
		if (count >= 0) {
			bytes += count;
			len -= (size_t)count;
		} else if (errno == EAGAIN) {
			struct pollfd room = {.fd = fd, .events = POLLOUT};
			poll(&room, 1, -1);
		} else if (errno != EINTR) {
			return false;
		}
	}
	return true;
}

bool gate_set(struct gate *gate, const char *name, const char *value, struct error *err)
{
	if (gate->fd >= 0 && send_all(gate->fd, GATE_SET, strlen(GATE_SET)) &&
		send_all(gate->fd, name, strlen(name)) && send_all(gate->fd, "=", 1) &&
		send_all(gate->fd, value, strlen(value) + 1)) {
		return true;
	}
	if (gate->fd < 0 || gate_read(gate, false, err) != GATE_FAILED) {
		died(err);
	}
	return false;
}

bool gate_go(struct gate *gate, struct error *err)
{
	size_t length = strlen(GATE_GO);
	if (gate->fd >= 0 && send(gate->fd, GATE_GO, length, MSG_NOSIGNAL) == (ssize_t)length) {
		return true;
	}
	died(err);
	return false;
}

void gate_close(struct gate *gate)
{
	if (gate->fd >= 0) {
		close(gate->fd);
	}
	gate->fd = -1;
}
