#include "commands/arming.h"

#include <stdlib.h>
#include <unistd.h>

#include "process/environment.h"

extern char **environ;

const struct param arming_params[] = {
	{.name = "device",
		.type = PARAM_STRING,
		.is_unsupported = true,
		.about = "The GPU that the program is to see, by name, index or uuid."},
	{.name = NULL},
};

struct gpu_program *arming_create(
	struct daemon *daemon, const char *const *changes, bool exact, struct error *err)
{
	const struct gpu_backend *backend = gpu_backend_choose();
	if (backend == NULL) {
		error_set(err, ERROR_BACKEND_UNAVAILABLE, "this profd was built without GPU traces");
		return NULL;
	}
	char **environment =
		environment_create(exact ? NULL : (const char *const *)environ, changes, err);
	if (environment == NULL) {
		return NULL;
	}
	const struct gpu_arming arming = {
		.loop = daemon->loop,
		.log = &daemon->log,
		.environment = (const char *const *)environment,
	};
	struct gpu_program *program = gpu_program_arm(backend, &arming, err);
	free(environment);
	return program;
}
