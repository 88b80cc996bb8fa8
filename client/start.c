#include "client/profctl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/programs.h"
#include "protocol/socket_path.h"

#define IDLE_SECONDS  "600"
#define START_TIMEOUT 10000         /* ms */
#define LOG_BYTES     (1024 * 1024) /* a larger log begins anew */
#define PATH_BYTES    4096
#define READY_FD      3
#define READY_FD_TEXT "3"

/* Everything that the new daemon's processes need, made before the fork. */
struct start {
	char program[PATH_BYTES];
	char socket[SOCKET_PATH_BYTES];
	char log[PATH_BYTES];
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
		execl(start->program, "profd", "--socket", start->socket, "--idle-exit", IDLE_SECONDS,
			"--ready-fd", READY_FD_TEXT, (char *)NULL);
	}
	dprintf(READY_FD, "error: exec %s: %s\n", start->program, strerror(errno));
	_exit(1);
}

/* What the daemon says on the ready pipe: "ready\n" or "error: …\n". */
static bool read_ready(int fd, const struct start *start, struct error *err)
{
	char said[4096];
	size_t used = 0;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	while (used < sizeof(said) - 1 && memchr(said, '\n', used) == NULL) {
		int ready = poll(&poll_fd, 1, START_TIMEOUT);
		if (ready < 0 && errno == EINTR) {
			continue;
		}
		if (ready == 0) {
			error_set(err, ERROR_TIMEOUT, "profd was started but did not get ready in %d s",
				START_TIMEOUT / 1000);
			return error_hint(err, "its log is %s", start->log);
		}
		ssize_t count = read(fd, said + used, sizeof(said) - 1 - used);
		if (count <= 0) {
			break;
		}
		used += (size_t)count;
	}
	said[used] = '\0';
	said[strcspn(said, "\n")] = '\0';
	if (strcmp(said, "ready") == 0) {
		return true;
	}
	const char *prefix = "error: ";
	bool told = strncmp(said, prefix, strlen(prefix)) == 0;
	error_set(err, ERROR_IO, "profd could not be started: %s",
		told ? said + strlen(prefix) : "it ended before it was ready");
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

static bool prepare(struct start *start, struct error *err)
{
	start->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (start->null_fd < 0) {
		return error_errno(err, "open /dev/null");
	}
	start->log_fd = open_log(start, err);
	return start->log_fd >= 0 &&
		   programs_find("profd", start->program, sizeof(start->program), err);
}

/* Starts the daemon unless another profctl was faster: whoever holds the lock starts, the others find it running. */
static struct profclient *start_locked(struct start *start, struct error *err)
{
	char lock_path[PATH_BYTES];
	snprintf(lock_path, sizeof(lock_path), "%s.start", start->socket);
	int lock = open(lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0) {
		error_errno(err, "open %s", lock_path);
		return NULL;
	}
	while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
	}
	struct profclient *client = profclient_open(start->socket, err);
	if (client == NULL && prepare(start, err) && spawn(start, err)) {
		client = profclient_open(start->socket, err);
	}
	close(lock);
	return client;
}

struct profclient *profctl_connect(const struct profctl *profctl, bool may_start)
{
	struct error err = {0};
	struct start start = {.log_fd = -1, .null_fd = -1};
	if (!socket_path_find(profctl->socket_given, start.socket, &err)) {
		profctl_complain(&err);
		return NULL;
	}
	struct profclient *client = profclient_open(start.socket, &err);
	if (client == NULL && strcmp(err.detail, "not_running") == 0 && may_start &&
		!profctl->no_start && socket_path_prepare(start.socket, &err)) {
		client = start_locked(&start, &err);
	}
	if (client == NULL) {
		profctl_complain(&err);
	}
	if (start.log_fd >= 0) {
		close(start.log_fd);
	}
	if (start.null_fd >= 0) {
		close(start.null_fd);
	}
	return client;
}
