#include "process/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/pidfd.h"
#include "protocol/gate.h"

#define GUARD_FD 3    /* its end of the pair, in the guard */
#define SOON_MS  1000 /* between the starts of two guards that die */

static void free_handle(uv_handle_t *handle)
{
	free(handle);
}

bool guard_init(struct guard *guard, uv_loop_t *loop, const char *gate_path, struct error *err)
{
	guard->loop = loop;
	guard->gate_path = gate_path;
	guard->fd = -1;
	guard->poll = NULL;
	guard->again = calloc(1, sizeof(*guard->again));
	if (guard->again == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the guard's timer");
	}
	uv_timer_init(loop, guard->again);
	uv_unref((uv_handle_t *)guard->again);
	guard->again->data = guard;
	return true;
}

static void hang_up(struct guard *guard)
{
	if (guard->fd < 0) {
		return;
	}
	uv_close((uv_handle_t *)guard->poll, free_handle);
	close(guard->fd);
	close(guard->pidfd);
	guard->poll = NULL;
	guard->fd = -1;
}

void guard_finish(struct guard *guard)
{
	hang_up(guard);
	if (guard->again != NULL) {
		uv_close((uv_handle_t *)guard->again, free_handle);
		guard->again = NULL;
	}
}

static void on_again(uv_timer_t *timer)
{
	guard_ensure(timer->data, NULL); /* or the next launch tries, and tells */
}

static void on_hang_up(uv_poll_t *poll, int status, int events)
{
	(void)status; /* it never writes: whatever comes is its end */
	(void)events;
	struct guard *guard = poll->data;
	uint64_t lived_ms = uv_now(guard->loop) - guard->started_ms;
	hang_up(guard);
	uv_timer_start(guard->again, on_again, lived_ms < SOON_MS ? SOON_MS : 0, 0);
}

/* Its first process ends when the second has let go of everything of ours. */
static bool wait_for_it(pid_t pid, const char *gate_path, struct error *err)
{
	int status = 0;
	pid_t waited;
	do {
		waited = waitpid(pid, &status, 0);
	} while (waited < 0 && errno == EINTR);
	if (waited == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return true;
	}
	error_set(err, ERROR_LAUNCH_FAILED, "%s --guard ended with status %d", gate_path, status);
	error_detail(err, "guard");
	return error_hint(err, "install profd and profd-gate of the same version");
}

/* The line of the first process, which has ended: it is there. */
static bool read_pid(struct guard *guard, int fd, struct error *err)
{
	char line[GATE_GUARD_LINE_BYTES * 2] = "";
	int pid = 0;
	ssize_t count = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT);
	if (count <= 0 || sscanf(line, GATE_GUARD_READY, &pid) != 1) {
		error_set(err, ERROR_LAUNCH_FAILED, "the guard did not say which process it is");
		return error_detail(err, "guard");
	}
	guard->pidfd = pidfd_open_process(pid);
	return guard->pidfd >= 0 ||
		   error_errno_as(err, ERROR_LAUNCH_FAILED, errno, "the guard, process %d", pid);
}

static bool spawn_guard(const struct guard *guard, int end, struct error *err)
{
	const char *const argv[] = {guard->gate_path, "--guard", "--fd", "3", NULL};
	char *const nothing[] = {NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = posix_spawn_file_actions_init(&actions);
	if (status == 0) {
		status = posix_spawn_file_actions_adddup2(&actions, end, GUARD_FD);
		if (status == 0) {
			status =
				posix_spawn(&pid, guard->gate_path, &actions, NULL, (char *const *)argv, nothing);
		}
		posix_spawn_file_actions_destroy(&actions);
	}
	if (status != 0) {
		error_errno_as(
			err, ERROR_LAUNCH_FAILED, status, "cannot start %s --guard", guard->gate_path);
		error_detail(err, "guard");
		return error_hint(err, "end some processes, or raise the limits of this user (ulimit -u)");
	}
	return wait_for_it(pid, guard->gate_path, err);
}

/* ends[0] is ours, ends[1] the guard's, and not yet under its number there: dup2 onto itself would leave it close-on-exec. */
static bool make_ends(int ends[2], struct error *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
		return error_errno(err, "cannot make a socket pair for the guard");
	}
	ends[0] = pair[0];
	ends[1] = fcntl(pair[1], F_DUPFD_CLOEXEC, GUARD_FD + 1);
	close(pair[1]);
	if (ends[1] < 0) {
		error_errno(err, "cannot make a socket pair for the guard");
		close(ends[0]);
		return false;
	}
	return true;
}

static bool start(struct guard *guard, struct error *err)
{
	int ends[2] = {-1, -1};
	uv_poll_t *poll = malloc(sizeof(*poll));
	if (poll == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the guard");
	}
	if (!make_ends(ends, err)) {
		free(poll);
		return false;
	}
	bool started = spawn_guard(guard, ends[1], err) && read_pid(guard, ends[0], err);
	close(ends[1]);
	int status = started ? uv_poll_init(guard->loop, poll, ends[0]) : 0; /* non-blocking now */
	if (!started || status != 0) {
		if (status != 0) {
			error_errno_as(err, ERROR_IO, status, "cannot watch the guard");
			close(guard->pidfd);
		}
		close(ends[0]);
		free(poll);
		return false;
	}
	uv_unref((uv_handle_t *)poll);
	poll->data = guard;
	guard->poll = poll;
	guard->fd = ends[0];
	guard->started_ms = uv_now(guard->loop);
	uv_poll_start(poll, UV_READABLE, on_hang_up);
	return true;
}

/* It never writes, so anything but "nothing yet" is its end. */
static bool is_there(const struct guard *guard)
{
	char byte;
	return guard->fd >= 0 && recv(guard->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
		   (errno == EAGAIN || errno == EINTR);
}

bool guard_ensure(struct guard *guard, struct error *err)
{
	if (is_there(guard)) {
		return true;
	}
	hang_up(guard);
	if (!start(guard, err)) {
		return false;
	}
	uv_timer_stop(guard->again);
	guard->tell_all(guard);
	return guard->fd >= 0 || error_set(err, ERROR_LAUNCH_FAILED, "the guard does not listen");
}

/* One that does not take a line is of no use: it has died, or was stopped until its buffer was full. It must not see our end close. */
static bool tell(struct guard *guard, char sign, pid_t group)
{
	char line[GATE_GUARD_LINE_BYTES];
	int len = snprintf(line, sizeof(line), "%c%d\n", sign, (int)group);
	if (guard->fd >= 0 && send(guard->fd, line, (size_t)len, MSG_NOSIGNAL) == len) {
		return true;
	}
	if (guard->fd >= 0) {
		pidfd_send(guard->pidfd, SIGKILL);
		hang_up(guard);
		uv_timer_start(guard->again, on_again, SOON_MS, 0);
	}
	return false;
}

bool guard_list(struct guard *guard, pid_t group)
{
	return tell(guard, '+', group);
}

bool guard_add(struct guard *guard, pid_t group, struct error *err)
{
	return tell(guard, '+', group) || guard_ensure(guard, err);
}

void guard_remove(struct guard *guard, pid_t group)
{
	tell(guard, '-', group);
}
