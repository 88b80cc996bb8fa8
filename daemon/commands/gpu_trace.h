#ifndef COMMANDS_GPU_TRACE_H
#define COMMANDS_GPU_TRACE_H

#include <jansson.h>

#include "commands/daemon.h"

struct client;

/* What StartGpuTrace with these params, which were checked, does for process; client, which on_client_exit means, may be NULL. NULL: err. */
struct capture *gpu_trace_start(struct daemon *daemon, const json_t *params,
	struct process *process, struct client *client, struct error *err);

#endif
