#include "gpu/rendezvous.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

bool rendezvous_token(char token[RENDEZVOUS_TOKEN_BYTES], struct error *err)
{
	unsigned char bytes[(RENDEZVOUS_TOKEN_BYTES - 1) / 2];
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
		return error_errno(err, "getrandom");
	}
	for (size_t i = 0; i < sizeof(bytes); i++) {
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	}
	return true;
}

/* The mode is the descriptor's before the name is there. */
int rendezvous_socket(const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address.sun_path)) {
		error_set(err, ERROR_IO, "the socket's path %s has %zu bytes, at most %zu can be had", path,
			strlen(path), sizeof(address.sun_path) - 1);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || fchmod(fd, 0600) != 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		error_errno(err, "bind a socket to %s", path);
		if (fd >= 0) {
			close(fd);
		}
		return -1;
	}
	return fd;
}
