#ifndef SERVER_ACTIVATION_H
#define SERVER_ACTIVATION_H

#include <stdbool.h>

#include "protocol/error.h"

/*
 * Socket activation (sd_listen_fds(3)): a service manager made the socket, listens on it, and starts us with it as descriptor 3 when
 * somebody connects. $LISTEN_PID is our pid then and $LISTEN_FDS the number of descriptors.
 *
 * *fd is the socket, close-on-exec from now on, or 0 when there is none. The variables are removed, so that no child takes them for its
 * own. False: err is bad_params (more than one descriptor, or none that is open).
 */
bool activation_take(int *fd, struct error *err);

#endif
