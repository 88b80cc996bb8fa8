#include "commands/arming.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "process/environment.h"
#include "protocol/limits.h"
#include "protocol/text.h"
#include "target/target.h"

#define ENVIRONMENT_BYTES                                                                          \
	(2 * 1024 * 1024) /* as many as are read: an exec takes no more by default (execve(2)) */

extern char **environ;

static const char *const apis[] = {"vulkan", "gl", NULL};

const struct param arming_params[] = {
	{.name = "api",
		.type = PARAM_ENUM,
		.choices = apis,
		.fallback = "\"vulkan\"",
		.about = "What the program works with: Vulkan, or OpenGL and OpenGL ES by EGL or GLX."},
	{.name = "device",
		.type = PARAM_STRING,
		.is_unsupported = true,
		.about = "The GPU that the program is to see, by name, index or uuid."},
	{.name = "program",
		.type = PARAM_BOOLEAN,
		.fallback = "true",
		.about = "Whether the program itself may start GPU traces (profd_gpu_start)."},
	{.name = NULL},
};

bool arming_lets_program_ask(const json_t *gpu)
{
	return command_boolean(gpu, "program", true);
}

struct gpu_program *arming_create(struct daemon *daemon, const json_t *gpu,
	const char *const *changes, bool exact, struct error *err)
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
		.api = strcmp(command_string(gpu, "api", apis[0]), "gl") == 0 ? GPU_GL : GPU_VULKAN,
		.loop = daemon->loop,
		.log = &daemon->log,
		.environment = (const char *const *)environment,
		.lets_program_ask = arming_lets_program_ask(gpu),
	};
	struct gpu_program *program = gpu_program_arm(backend, &arming, err);
	free(environment);
	return program;
}

static bool read_environment(pid_t pid, char *text, size_t *len, struct error *err)
{
	if (!target_is_gate(pid)) {
		error_set(err, ERROR_UNSUPPORTED,
			"process %d does not wait behind profd-gate: a program that runs cannot be armed",
			(int)pid);
		return error_hint(err, "launch it with LaunchProcess and gpu, or behind profd-gate");
	}
	return target_environment(pid, text, ENVIRONMENT_BYTES, len, err);
}

struct gpu_program *arming_create_gated(
	struct daemon *daemon, const json_t *gpu, pid_t pid, struct error *err)
{
	VEC(const char *) texts = {0};
	struct gpu_program *program = NULL;
	size_t len = 0;
	char *text = malloc(ENVIRONMENT_BYTES + 1);
	bool ok = text != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
	if (ok && read_environment(pid, text, &len, err)) {
		text[len] = '\0';
		for (size_t pos = 0; ok && pos < len; pos += strlen(text + pos) + 1) {
			/* One without a name cannot be kept, and means nothing. */
			ok = text[pos] == '=' || text[pos] == '\0' || VEC_PUSH(&texts, text + pos);
		}
		if (ok && VEC_PUSH(&texts, NULL)) {
			program = arming_create(daemon, gpu, texts.items, true, err);
		} else {
			error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		}
	}
	VEC_FINISH(&texts);
	free(text);
	return program;
}

json_t *arming_environment(const struct gpu_program *program)
{
	json_t *object = json_object();
	const char *const *additions = program->backend->environment(program->armed);
	for (; *additions != NULL; additions++) {
		const char *equals = strchr(*additions, '=');
		char name[64];
		if (equals != NULL && (size_t)(equals - *additions) < sizeof(name)) {
			memcpy(name, *additions, (size_t)(equals - *additions));
			name[equals - *additions] = '\0';
			text_set(object, name, equals + 1, strlen(equals + 1));
		}
	}
	return object;
}
