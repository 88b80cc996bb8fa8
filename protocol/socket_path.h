#ifndef PROTOCOL_SOCKET_PATH_H
#define PROTOCOL_SOCKET_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#include "protocol/error.h"

#define SOCKET_PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

/*
 * Where the daemon listens: the same answer in daemon and clients (docs/protocol.md, "Transport").
 * given (--socket) or else $PROFD_SOCKET or else $XDG_RUNTIME_DIR/profd/profd.sock when that folder exists, is
 * ours and 0700, or else /tmp/profd-<uid>/profd.sock. path holds SOCKET_PATH_BYTES and is absolute. Errors: bad_params when it is too
 * long for sun_path (says both lengths). Touches nothing.
 */
bool socket_path_find(const char *given, char *path, struct error *err);

/*
 * Makes the socket's folder (0700) when it is missing and checks that it is a folder, ours and closed to others.
 * The parent of a default folder is trusted only as far as that. Errors: not_permitted, io; they name the folder and the remedy.
 */
bool socket_path_prepare(const char *path, struct error *err);

/* A connected, close-on-exec, blocking stream socket to the daemon at path, whose peer runs as our user or root. -1: err: code io with detail
 * "not_running" when nobody listens there or "not_a_socket", timeout with detail "hung" when its queue stays full for 2 s, not_permitted. */
int socket_path_connect(const char *path, struct error *err);

#endif
