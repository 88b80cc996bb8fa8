#include "protocol/peer.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool peer_read(int fd, struct peer *peer, struct error *err)
{
	struct ucred credentials;
	socklen_t len = sizeof(credentials);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) != 0) {
		return error_errno_as(
			err, ERROR_NOT_PERMITTED, errno, "who is at the other end of the socket");
	}
	*peer = (struct peer){.uid = credentials.uid, .pid = credentials.pid};
	return true;
}

bool peer_is_trusted(const struct peer *peer, struct error *err)
{
	uid_t own = geteuid();
	if (peer->uid == own || peer->uid == 0) {
		return true;
	}
	return error_set(err, ERROR_NOT_PERMITTED,
		"the other end of the socket runs as user %u, this end as user %u", (unsigned)peer->uid,
		(unsigned)own);
}

size_t peer_unread(int fd)
{
	int bytes = 0;
	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}
