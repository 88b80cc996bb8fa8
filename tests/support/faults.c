#include "support/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_bool is_armed;
static atomic_uint calls;
static _Atomic(const char *) first_failed;
static unsigned fail_at;
static int fail_with;
static enum fault_mode fail_mode;

void faults_begin(unsigned at, int error, enum fault_mode mode)
{
	fail_at = at;
	fail_with = error;
	fail_mode = mode;
	atomic_store(&calls, 0);
	atomic_store(&first_failed, NULL);
	atomic_store(&is_armed, true);
}

unsigned faults_end(const char **failed)
{
	atomic_store(&is_armed, false);
	const char *name = atomic_load(&first_failed);
	if (failed != NULL) {
		*failed = name != NULL ? name : "";
	}
	return atomic_load(&calls);
}

static bool strikes(const char *name)
{
	if (!atomic_load(&is_armed)) {
		return false;
	}
	unsigned number = atomic_fetch_add(&calls, 1) + 1;
	if (number != fail_at && (fail_mode == FAULT_ONCE || number < fail_at)) {
		return false;
	}
	const char *none = NULL;
	atomic_compare_exchange_strong(&first_failed, &none, name);
	errno = fail_with;
	return true;
}

/* The linker calls the first in place of the second. */
#define WRAP(type, failure, name, parameters, arguments)                                           \
	type __real_##name parameters;                                                                 \
	type __wrap_##name parameters;                                                                 \
	type __wrap_##name parameters                                                                  \
	{                                                                                              \
		return strikes(#name) ? (failure) : __real_##name arguments;                               \
	}

WRAP(ssize_t, -1, read, (int fd, void *bytes, size_t len), (fd, bytes, len))
WRAP(ssize_t, -1, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))
WRAP(ssize_t, -1, pread64, (int fd, void *bytes, size_t len, off_t at), (fd, bytes, len, at))
WRAP(int, -1, fsync, (int fd), (fd))
WRAP(int, -1, fstat64, (int fd, struct stat *status), (fd, status))
WRAP(int, -1, ftruncate64, (int fd, off_t len), (fd, len))
WRAP(int, -1, mkdirat, (int fd, const char *name, mode_t mode), (fd, name, mode))
WRAP(int, -1, unlinkat, (int fd, const char *name, int flags), (fd, name, flags))
WRAP(int, -1, renameat, (int from_fd, const char *from, int to_fd, const char *to),
	(from_fd, from, to_fd, to))
WRAP(int, -1, faccessat, (int fd, const char *name, int mode, int flags), (fd, name, mode, flags))
WRAP(int, -1, socketpair, (int domain, int type, int protocol, int pair[2]),
	(domain, type, protocol, pair))
WRAP(DIR *, NULL, fdopendir, (int fd), (fd))
WRAP(void *, MAP_FAILED, mmap64, (void *at, size_t len, int how, int flags, int fd, off_t offset),
	(at, len, how, flags, fd, offset))

int __real_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...);
int __wrap_openat64(int fd, const char *name, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return strikes("openat") ? -1 : __real_openat64(fd, name, flags, mode);
}

int __real_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return strikes("open") ? -1 : __real_open64(name, flags, mode);
}

/* Only F_DUPFD_CLOEXEC of it takes a descriptor; its argument is an int, as those of the others that are used. */
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	int argument = va_arg(arguments, int);
	va_end(arguments);
	return command == F_DUPFD_CLOEXEC && strikes("fcntl") ? -1
														  : __real_fcntl64(fd, command, argument);
}

/* The kernel's calls without a function of their own: perf_event_open(2), pidfd_open(2), openat2(2). */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
/* Six are read as from registers, however many were given. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	long values[6];
	va_list arguments;
	va_start(arguments, number);
	for (size_t i = 0; i < 6; i++) {
		values[i] = va_arg(arguments, long);
	}
	va_end(arguments);
	return strikes("syscall") ? -1
							  : __real_syscall(number, values[0], values[1], values[2], values[3],
									values[4], values[5]);
}
