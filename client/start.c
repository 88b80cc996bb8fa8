#include "client/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/clock.h"
#include "protocol/programs.h"
#include "protocol/socket_path.h"

#define LOG_BYTES     (1024 * 1024) /* a larger log begins anew */
#define PATH_BYTES    4096
#define READY_FD      3
#define READY_FD_TEXT "3"

/* Everything that the new daemon's processes need, made before the fork. */
struct start {
	const char *socket;
	char program[PATH_BYTES];
	char log[SOCKET_PATH_BYTES + 8];
	char idle_exit[16]; /* seconds; "": never */
	int log_fd;
	int null_fd;
};

static int open_log(struct start *start, struct error *err)
{
	snprintf(start->log, sizeof(start->log), "%s.log", start->socket);
	int fd = open(start->log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_errno(err, "open the daemon's log %s", start->log);
		return -1;
	}
	struct stat info;
	if (fstat(fd, &info) == 0 && info.st_size > LOG_BYTES && ftruncate(fd, 0) != 0) {
		error_errno(err, "begin the daemon's log %s anew", start->log);
		close(fd);
		return -1;
	}
	return fd;
}

/* In the child, where only async-signal-safe functions may be called. */
static void say(int fd, const char *text)
{
	if (text != NULL && write(fd, text, strlen(text)) < 0) {
		_exit(1);
	}
}

/* In the child: becomes a daemon that keeps nothing of ours, and never returns. */
static void become_daemon(const struct start *start, int ready_fd)
{
	/* A session of its own, led by nobody: it can never get a controlling terminal. */
	if (setsid() < 0 || fork() != 0) {
		_exit(0);
	}
	for (int number = 1; number < NSIG; number++) {
		signal(number, SIG_DFL);
	}
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	umask(077);
	if (chdir("/") == 0 && dup2(start->null_fd, 0) == 0 && dup2(start->log_fd, 1) == 1 &&
		dup2(start->log_fd, 2) == 2 && dup2(ready_fd, READY_FD) == READY_FD) {
		if (ready_fd == READY_FD) {
			fcntl(READY_FD, F_SETFD, 0);
		}
		close_range(READY_FD + 1, ~0u, 0);
		bool stays = start->idle_exit[0] == '\0';
		execl(start->program, "profd", "--socket", start->socket, "--ready-fd", READY_FD_TEXT,
			stays ? (char *)NULL : "--idle-exit", start->idle_exit, (char *)NULL);
	}
	int problem = errno;
	say(READY_FD, "error: ");
	say(READY_FD, start->program);
	say(READY_FD, " cannot be executed: ");
	say(READY_FD, strerrordesc_np(problem));
	say(READY_FD, "\n");
	_exit(1);
}

/* One line, without its end; what came until the end of the stream, if that comes first. False: neither came in time. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t used = 0;
	uint64_t end = clock_monotonic_ms() + START_TIMEOUT_MS;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	line[0] = '\0';
	while (used < size - 1 && strchr(line, '\n') == NULL) {
		uint64_t now = clock_monotonic_ms();
		int ready = now < end ? poll(&poll_fd, 1, (int)(end - now)) : 0;
		if (ready == 0) {
			return false;
		}
		ssize_t count = ready > 0 ? read(fd, line + used, size - 1 - used) : -1;
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			break;
		}
		used += (size_t)count;
		line[used] = '\0';
	}
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* What the daemon says on the ready pipe: "ready\n" or "error: …\n". */
static bool read_ready(int fd, const struct start *start, struct error *err)
{
	static const char prefix[] = "error: ";
	char said[4096];
	if (!read_line(fd, said, sizeof(said))) {
		error_set(err, ERROR_TIMEOUT, "profd was started but did not get ready in %d s",
			START_TIMEOUT_MS / 1000);
	} else if (strcmp(said, "ready") == 0) {
		return true;
	} else {
		bool told = strncmp(said, prefix, sizeof(prefix) - 1) == 0;
		error_set(err, ERROR_IO, "profd could not be started: %s",
			told ? said + sizeof(prefix) - 1 : "it ended before it was ready");
	}
	error_detail(err, "start_failed");
	return error_hint(err, "its log is %s", start->log);
}

static bool spawn(const struct start *start, struct error *err)
{
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) != 0) {
		return error_errno(err, "make a pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		become_daemon(start, ready[1]);
	}
	close(ready[1]);
	bool ok = pid > 0;
	if (ok) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
		}
		ok = read_ready(ready[0], start, err);
	} else {
		error_errno(err, "fork");
	}
	close(ready[0]);
	return ok;
}

static bool prepare(struct start *start, int idle_exit_s, struct error *err)
{
	if (idle_exit_s > 0) {
		snprintf(start->idle_exit, sizeof(start->idle_exit), "%d", idle_exit_s);
	}
	start->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (start->null_fd < 0) {
		return error_errno(err, "open /dev/null");
	}
	start->log_fd = open_log(start, err);
	return start->log_fd >= 0 &&
		   programs_find("profd", start->program, sizeof(start->program), err);
}

/* Held while a daemon is started; -1: err. */
static int lock_start(const char *socket_path, struct error *err)
{
	char path[SOCKET_PATH_BYTES + 8];
	snprintf(path, sizeof(path), "%s.start", socket_path);
	int lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0) {
		error_errno(err, "open %s", path);
		return -1;
	}
	while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
	}
	return lock;
}

static bool is_running(const char *socket_path)
{
	struct error err = {0};
	int fd = socket_path_connect(socket_path, &err);
	if (fd >= 0) {
		close(fd);
	}
	/* Whoever connects afterwards is told what else can be wrong. */
	return fd >= 0 || strcmp(err.detail, "not_running") != 0;
}

bool start_daemon(const char *socket_path, int idle_exit_s, struct error *err)
{
	if (!socket_path_prepare(socket_path, err)) {
		return false;
	}
	int lock = lock_start(socket_path, err);
	if (lock < 0) {
		return false;
	}
	struct start start = {.socket = socket_path, .log_fd = -1, .null_fd = -1};
	bool ok = is_running(socket_path) || (prepare(&start, idle_exit_s, err) && spawn(&start, err));
	if (start.log_fd >= 0) {
		close(start.log_fd);
	}
	if (start.null_fd >= 0) {
		close(start.null_fd);
	}
	close(lock);
	return ok;
}
