#ifndef COMMANDS_ARMING_H
#define COMMANDS_ARMING_H

#include <stdbool.h>

#include "commands/command.h"
#include "commands/daemon.h"
#include "gpu/gpu.h"

/* Programs that are armed for StartGpuTrace when they are launched. */

/* The members of the parameter gpu. */
extern const struct param arming_params[];

/*
 * Arms a program whose environment will be changes on the daemon's own, or (exact) nothing else; what the backend adds to it is still to be added.
 * Held once. NULL: err is backend_unavailable with a detail of what is missing, io, limit_exceeded.
 */
struct gpu_program *arming_create(
	struct daemon *daemon, const char *const *changes, bool exact, struct error *err);

#endif
