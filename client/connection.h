#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inbox.h"
#include "client/profclient.h"
#include "protocol/error.h"
#include "protocol/framing.h"

/* The inside of a connection, for the library's own files: connect.c makes and ends it, profclient.c uses it. */
struct profclient {
	int fd;
	int64_t last_id;
	struct framing framing;
	struct inbox inbox;
	char *unsent; /* owned; unsent[sent, unsent_len) waits for room */
	size_t sent, unsent_len, unsent_size;
	bool cannot_send;  /* the daemon reads no more, but may have said why */
	struct error lost; /* why the connection ended; ERROR_NONE while it stands */
	json_t *hello;     /* owned */
};

/* An error for the library's user (NULL: nobody). Returns false, so that `return connection_tell(…)` reads well. */
bool connection_tell(struct profclient_error *told, const struct error *err);

#endif
