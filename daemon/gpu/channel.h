#ifndef GPU_CHANNEL_H
#define GPU_CHANNEL_H

#include <stdbool.h>

#include <uv.h>

#include "base/log.h"
#include "gpu/gpu.h"

/*
 * The socket of one armed program, and whoever of its processes is at the other end. Among them is the one that records: the one that works with the GPU;
 * as long as none has made a device, the first that will. What it does is told to the listener; listen, serve, start, stop, status are gpu/gpu.h's.
 * Loop thread only.
 */
struct channel;

/* Listens on a new socket (0600) at path, which the caller's private folder holds and removes. Owned. NULL: err. */
struct channel *channel_open(
	uv_loop_t *loop, const struct log *log, const char *path, struct error *err);
const char *channel_token(const struct channel *channel);
void channel_listen(struct channel *channel, const struct gpu_listener *listener, void *context);
void channel_serve(struct channel *channel, const struct gpu_server *server, void *context);
bool channel_start(struct channel *channel, const struct gpu_range *range, struct error *err);
bool channel_stop(struct channel *channel);
void channel_status(const struct channel *channel, struct gpu_status *status);
/* Unlinks the socket and closes everything; the memory goes with a later turn of the loop. NULL is fine. */
void channel_close(struct channel *channel);

#endif
