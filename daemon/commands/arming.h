#ifndef COMMANDS_ARMING_H
#define COMMANDS_ARMING_H

#include <stdbool.h>

#include "commands/command.h"
#include "commands/daemon.h"
#include "gpu/gpu.h"

/* Programs that are armed for StartGpuTrace when they are launched. */

/* The members of the parameter gpu. */
extern const struct param arming_params[];
/* Of a parameter gpu that was checked: the program may ask for itself to be recorded. */
bool arming_lets_program_ask(const json_t *gpu);

/*
 * Arms a program, as the checked parameter gpu says, whose environment will be changes on the daemon's own, or (exact) nothing else; what the backend adds to it is still to be added.
 * Held once. NULL: err is backend_unavailable with a detail of what is missing, io, limit_exceeded.
 */
struct gpu_program *arming_create(struct daemon *daemon, const json_t *gpu,
	const char *const *changes, bool exact, struct error *err);

/* The same of a process that waits behind its gate, with what it has now as its whole environment. NULL: err is unsupported for one that does not wait. */
struct gpu_program *arming_create_gated(
	struct daemon *daemon, const json_t *gpu, pid_t pid, struct error *err);

/* What arms it, for whoever gives the program its environment: {NAME: value}. Owned. */
json_t *arming_environment(const struct gpu_program *program);

#endif
