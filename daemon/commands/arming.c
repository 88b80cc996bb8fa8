#include "commands/arming.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "process/environment.h"
#include "protocol/gpu_pick.h"
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
		.min = 1,
		.max = GPU_PICK_WISH_BYTES - 1,
		.about = "The GPU that the program is to see, by name, index or uuid; left out: each."},
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

static enum gpu_api api_of(const json_t *gpu)
{
	return strcmp(command_string(gpu, "api", apis[0]), "gl") == 0 ? GPU_GL : GPU_VULKAN;
}

const char *arming_device(const json_t *gpu)
{
	return command_string(gpu, "device", NULL);
}

bool arming_needs_check(const json_t *gpu)
{
	return json_is_object(gpu) && arming_device(gpu) != NULL && api_of(gpu) != GPU_GL;
}

/* Programs of GL ask their display for what it has: there is no list that could be shortened. */
static bool check_choice(const json_t *gpu, struct error *err)
{
	if (api_of(gpu) != GPU_GL || arming_device(gpu) == NULL) {
		return true;
	}
	error_set(err, ERROR_UNSUPPORTED,
		"which GPU a program of OpenGL uses cannot be chosen for it: device is %.80s",
		arming_device(gpu));
	error_detail(err, "device_not_chosen");
	return error_hint(err,
		"leave it out, and say device in StartGpuTrace; Mesa's variable DRI_PRIME chooses the GPU");
}

char **arming_environment_of(const char *const *changes, bool exact, struct error *err)
{
	char **texts = environment_create(exact ? NULL : (const char *const *)environ, changes, err);
	char **copy = texts != NULL ? environment_copy((const char *const *)texts) : NULL;
	if (texts != NULL && copy == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
	}
	free(texts);
	return copy;
}

struct gpu_program *arming_create(
	struct daemon *daemon, const json_t *gpu, const char *const *environment, struct error *err)
{
	const struct gpu_backend *backend = gpu_backend_choose();
	if (backend == NULL) {
		error_set(err, ERROR_BACKEND_UNAVAILABLE, "this profd was built without GPU traces");
		return NULL;
	}
	const struct gpu_arming arming = {
		.api = api_of(gpu),
		.loop = daemon->loop,
		.log = &daemon->log,
		.environment = environment,
		.lets_program_ask = arming_lets_program_ask(gpu),
		.device = arming_device(gpu),
	};
	return check_choice(gpu, err) ? gpu_program_arm(backend, &arming, err) : NULL;
}

static bool read_environment(pid_t pid, char *text, size_t *len, struct error *err)
{
	if (!target_is_ours(pid, err)) {
		return false;
	}
	if (!target_is_gate(pid)) {
		error_set(err, ERROR_UNSUPPORTED,
			"process %d does not wait behind profd-gate: a program that runs cannot be armed",
			(int)pid);
		return error_hint(err, "launch it with LaunchProcess and gpu, or behind profd-gate");
	}
	return target_environment(pid, text, ENVIRONMENT_BYTES, len, err);
}

char **arming_environment_of_gate(pid_t pid, struct error *err)
{
	VEC(const char *) texts = {0};
	char **environment = NULL;
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
			environment = arming_environment_of(texts.items, true, err);
		} else {
			error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		}
	}
	VEC_FINISH(&texts);
	free(text);
	return environment;
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
