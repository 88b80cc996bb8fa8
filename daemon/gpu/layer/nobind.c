/*
 * A library for LD_PRELOAD. A process with RenderDoc in it listens on 0.0.0.0:38920 (or the next free port up to 38927), and whoever reaches
 * that may trigger captures and copy them. Here RenderDoc's binds to the network fail, which it logs and lives with; all others go on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define LIBRARY "librenderdoc"

__attribute__((visibility("default"))) int bind(
	int fd, const struct sockaddr *address, socklen_t len);

static bool is_renderdoc(const void *code)
{
	Dl_info where;
	if (dladdr(code, &where) == 0 || where.dli_fname == NULL) {
		return false;
	}
	const char *slash = strrchr(where.dli_fname, '/');
	const char *name = slash != NULL ? slash + 1 : where.dli_fname;
	return strncmp(name, LIBRARY, strlen(LIBRARY)) == 0;
}

static bool is_network(const struct sockaddr *address, socklen_t len)
{
	return address != NULL && len >= sizeof(address->sa_family) &&
		   (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

int bind(int fd, const struct sockaddr *address, socklen_t len)
{
	int (*next)(int, const struct sockaddr *, socklen_t);
	if (is_network(address, len) && is_renderdoc(__builtin_return_address(0))) {
		errno = EACCES;
		return -1;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "bind");
	if (next == NULL) {
		errno = ENOSYS;
		return -1;
	}
	return next(fd, address, len);
}
