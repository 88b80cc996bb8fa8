#ifndef COMMANDS_LEASE_H
#define COMMANDS_LEASE_H

#include <stdbool.h>

#include "commands/daemon.h"

/*
 * Ties a running capture to the client that started it (on_client_exit), and tells the daemon when it has ended. Every capture
 * that a command starts has one, until its end.
 */

/* stop_with: the capture ends when that client goes; NULL: it goes on. False: memory is out. */
bool lease_create(struct daemon *daemon, struct capture *capture, struct client *stop_with);

/* Stops what was tied to a client that has gone. */
void leases_client_gone(struct daemon *daemon, const struct client *client);

/* Before the captures are destroyed. */
void leases_finish(struct daemon *daemon);

#endif
