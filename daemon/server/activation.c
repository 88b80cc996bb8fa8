#include "server/activation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_FD 3

static long number(const char *name)
{
	const char *text = getenv(name);
	return text != NULL ? strtol(text, NULL, 10) : 0;
}

bool activation_take(int *fd, struct error *err)
{
	bool is_ours = number("LISTEN_PID") == (long)getpid();
	long count = is_ours ? number("LISTEN_FDS") : 0;
	*fd = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (count == 0) {
		return true;
	}
	if (count != 1) {
		error_set(err, ERROR_BAD_PARAMS, "%ld sockets were passed to profd, it serves one", count);
		return error_hint(err, "keep one ListenStream= in the socket unit");
	}
	if (fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) != 0) {
		return error_errno(err, "descriptor %d, passed to profd as its socket", FIRST_FD);
	}
	*fd = FIRST_FD;
	return true;
}
