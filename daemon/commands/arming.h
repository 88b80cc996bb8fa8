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

/* The GPU that it is to see (commands/device_check.h looks whether it is there); NULL: each. Borrowed. */
const char *arming_device(const json_t *gpu);

/* It names one that this can be done for, and that has to be looked for. */
bool arming_needs_check(const json_t *gpu);

/* The environment that a program will have, before it is armed: changes on the daemon's own, or (exact) nothing else. Owned with one free(). NULL: err. */
char **arming_environment_of(const char *const *changes, bool exact, struct error *err);
/* That of a process that waits behind its gate. NULL: err is unsupported for one that does not wait. */
char **arming_environment_of_gate(pid_t pid, struct error *err);

/*
 * Arms a program, as the checked parameter gpu says, that will have this environment; what the backend adds to it is still to be added.
 * Held once. NULL: err is backend_unavailable with a detail of what is missing, unsupported, io, limit_exceeded.
 */
struct gpu_program *arming_create(
	struct daemon *daemon, const json_t *gpu, const char *const *environment, struct error *err);

/* What arms it, for whoever gives the program its environment: {NAME: value}. Owned. */
json_t *arming_environment(const struct gpu_program *program);

#endif
