#ifndef GPU_RENDEZVOUS_H
#define GPU_RENDEZVOUS_H

#include <stdbool.h>

#include "protocol/error.h"

/* Where an armed program's processes and profd meet: a socket, and the token by which they know each other. */

#define RENDEZVOUS_TOKEN_BYTES 33 /* 128 random bits in hex, and a NUL */

bool rendezvous_token(char token[RENDEZVOUS_TOKEN_BYTES], struct error *err);
/* A stream socket of mode 0600, bound to path; it does not block, nor listen yet. Owned. -1: err. */
int rendezvous_socket(const char *path, struct error *err);

#endif
