#ifndef PROTOCOL_PEER_H
#define PROTOCOL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol/error.h"

/*
 * Who is at the other end of a connected Unix stream socket, as the kernel knows it (unix(7), SO_PEERCRED): for
 * a server's end who connected, for a client's end who listened. Any thread.
 */
struct peer {
	uid_t uid;
	pid_t pid; /* for people only: it may be another process by now */
};

/* False: err is not_permitted; whoever cannot be known is not let in. */
bool peer_read(int fd, struct peer *peer, struct error *err);

/* True when the peer runs as our user or as root. False: err is not_permitted and names both users. */
bool peer_is_trusted(const struct peer *peer, struct error *err);

/* What was sent to the peer and it has not read, in bytes as the kernel accounts for them (SIOCOUTQ, with overhead); 0 when unknown. */
size_t peer_unread(int fd);

#endif
