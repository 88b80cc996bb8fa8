#ifndef COMMANDS_DEVICE_CHECK_H
#define COMMANDS_DEVICE_CHECK_H

#include "commands/command.h"

/*
 * Goes on with run(daemon, request, params) in a later turn of the loop, once a probe has seen that the GPU which a program is to see (the member gpu of params,
 * arming_device) is there. environment is what the program will have, arming_environment_of's; takes it. Else the request fails: backend_unavailable, with the
 * details of gpu/devices.h, or what the probe misses. A request whose client goes meanwhile ends, and nothing is run.
 */
void device_check(struct daemon *daemon, struct request *request, const json_t *params,
	char **environment,
	void (*run)(struct daemon *daemon, struct request *request, const json_t *params));

#endif
