#ifndef SERVER_ENDPOINT_H
#define SERVER_ENDPOINT_H

#include <stdbool.h>
#include <sys/types.h>

#include "protocol/error.h"
#include "protocol/socket_path.h"

/*
 * The socket's name in the file system, and the lock beside it that says who may have that name. Blocking, one thread at a time.
 */
struct endpoint {
	char path[SOCKET_PATH_BYTES];
	int lock_fd;  /* of <path>.lock; -1: not taken */
	dev_t device; /* of the socket's name: is it still ours? */
	ino_t inode;  /* 0: none was made */
	bool
		is_given; /* the socket was made by whoever started us, who keeps it: its name is not ours to touch */
};

/* Of no name yet. */
void endpoint_init(struct endpoint *endpoint);
/* Removes the name when it is still ours; gives the lock back. The lock's file stays. */
void endpoint_finish(struct endpoint *endpoint);

/*
 * Takes the lock of path and makes a listening socket there: bound with mode 0600 under a temporary name, then renamed. A stale
 * socket is replaced. The socket is close-on-exec and non-blocking; owned by the caller. -1: err is limit_exceeded with detail
 * "already_running" and the pid in the lock, not_permitted (the folder, or what is in the way), or io.
 */
int endpoint_listen(struct endpoint *endpoint, const char *path, struct error *err);

/* Is a socket that others made, and that listens: path becomes its name. False: err is bad_params and says what it is instead. */
bool endpoint_take(struct endpoint *endpoint, int fd, struct error *err);

/* Somebody removed or replaced the socket's name, the lock's, or their folder. Always false for a given one. */
bool endpoint_is_missing(const struct endpoint *endpoint);
/* As endpoint_listen, for a missing one: the folder is made again, and the lock is taken anew unless it is still ours. */
int endpoint_restore(struct endpoint *endpoint, struct error *err);

#endif
