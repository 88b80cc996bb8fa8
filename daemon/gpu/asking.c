#include "gpu/asking.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/spawning.h"
#include "protocol/clock.h"
#include "protocol/names.h"

extern char **environ;

/* The recording's own, which would record the asking. */
static bool is_left_out(const char *text)
{
	static const char *const names[] = {ENV_GPU "=", ENV_GPU_RENDERDOC "=",
		"ENABLE_VULKAN_RENDERDOC_CAPTURE=", "VK_INSTANCE_LAYERS=", "LD_PRELOAD="};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(text, names[i], strlen(names[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* Owned with one free; NULL: memory is out. */
static char **make_environment(const char *const *environment)
{
	const char *const *from = environment != NULL ? environment : (const char *const *)environ;
	size_t count = 0, used = 0;
	while (from[count] != NULL) {
		count++;
	}
	char **copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < count; i++) {
		if (!is_left_out(from[i])) {
			copy[used++] = (char *)from[i];
		}
	}
	return copy;
}

static bool spawn(
	const char *const *argv, char **environment, int out, pid_t *pid, struct error *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	spawning_set_attributes(&attributes);
	int status =
		posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)argv, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return status == 0 || error_errno_as(err, ERROR_IO, status, "run %s", argv[0]);
}

/* Until its end, or the time is over (false). */
static bool collect(int fd, unsigned limit_ms, char *out, size_t size)
{
	uint64_t end_ns = clock_monotonic_ns() + (uint64_t)limit_ms * 1000000;
	size_t len = 0;
	char waste[512];
	for (;;) {
		uint64_t now_ns = clock_monotonic_ns();
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		if (now_ns >= end_ns) {
			return false;
		}
		if (poll(&wait, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0) {
			continue;
		}
		bool is_full = len + 1 >= size;
		ssize_t got =
			read(fd, is_full ? waste : out + len, is_full ? sizeof(waste) : size - 1 - len);
		if (got == 0 || (got < 0 && errno != EINTR)) {
			return true;
		}
		len += !is_full && got > 0 ? (size_t)got : 0;
		out[len] = '\0';
	}
}

static bool end(pid_t pid, const char *name, bool is_done, unsigned limit_ms, struct error *err)
{
	int status = 0;
	if (!is_done) {
		kill(-pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (!is_done) {
		return error_set(err, ERROR_TIMEOUT, "%s did not end within %u ms", name, limit_ms);
	}
	if (WIFSIGNALED(status)) {
		return error_set(err, ERROR_IO, "%s was ended by signal %d", name, WTERMSIG(status));
	}
	return WEXITSTATUS(status) == 0 ||
		   error_set(err, ERROR_IO, "%s ended with status %d", name, WEXITSTATUS(status));
}

bool asking_run(const char *const *argv, const char *const *environment, unsigned limit_ms,
	char *out, size_t size, struct error *err)
{
	int ends[2];
	pid_t pid = 0;
	out[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0) {
		return error_errno(err, "make a pipe");
	}
	char **variables = make_environment(environment);
	bool ok = variables != NULL
				  ? spawn(argv, variables, ends[1], &pid, err)
				  : error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to run %s", argv[0]);
	free(variables);
	close(ends[1]);
	if (ok) {
		bool is_done = collect(ends[0], limit_ms, out, size);
		ok = end(pid, argv[0], is_done, limit_ms, err);
	}
	close(ends[0]);
	return ok;
}
