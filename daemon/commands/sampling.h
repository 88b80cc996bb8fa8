#ifndef COMMANDS_SAMPLING_H
#define COMMANDS_SAMPLING_H

#include <stdbool.h>

#include <jansson.h>

#include "commands/command.h"
#include "commands/daemon.h"

/* StartSamplingProfile's parameters. The first SAMPLING_TARGET_PARAMS say of what, and whether it is a repetition; the rest is also LaunchProcess's profile. */
extern const struct param sampling_params[];
#define SAMPLING_TARGET_PARAMS 3

/*
 * Starts a capture of process, or of pid when that is NULL, as the checked params ask. client started it (NULL: it is gone already).
 * Subscribes nobody. NULL: err.
 */
struct capture *sampling_start(struct daemon *daemon, const json_t *params, struct process *process,
	pid_t pid, struct client *client, struct error *err);

#endif
