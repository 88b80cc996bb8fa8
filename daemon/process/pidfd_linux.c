#include "process/pidfd.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

int pidfd_open_process(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0u); /* close-on-exec by itself */
}

bool pidfd_send(int pidfd, int signal)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0u) == 0;
}

bool pidfd_has_ended(int pidfd)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};
	return poll(&poller, 1, 0) == 1 && (poller.revents & POLLIN) != 0;
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	struct pidfd_watch *watch = poll->data;
	uv_poll_stop(poll); /* it stays readable */
	watch->ended(watch);
}

static void on_closed(uv_handle_t *handle)
{
	struct pidfd_watch *watch = handle->data;
	watch->closed(watch);
}

bool pidfd_watch_open(struct pidfd_watch *watch, uv_loop_t *loop, pid_t pid, struct error *err)
{
	watch->fd = -1;
	int fd = pidfd_open_process(pid);
	/* The last two: pid is a thread, by the kernel's version. */
	if (fd < 0 && (errno == ESRCH || errno == EINVAL || errno == ENOENT)) {
		return error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %d", (int)pid);
	}
	if (fd < 0) {
		return error_errno(err, "pidfd_open for process %d", (int)pid);
	}
	int status = uv_poll_init(loop, &watch->poll, fd);
	if (status != 0) {
		close(fd);
		return error_errno_as(err, ERROR_IO, status, "cannot watch process %d", (int)pid);
	}
	watch->fd = fd;
	watch->poll.data = watch;
	uv_poll_start(&watch->poll, UV_READABLE, on_ended);
	return true;
}

void pidfd_watch_close(struct pidfd_watch *watch)
{
	if (watch->fd < 0) {
		return;
	}
	uv_close((uv_handle_t *)&watch->poll, on_closed);
	close(watch->fd);
	watch->fd = -1;
}
