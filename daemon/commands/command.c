#include "commands/command.h"

#include <string.h>

#include "commands/params.h"
#include "commands/request_keys.h"
#include "commands/signal_names.h"
#include "protocol/error.h"
#include "protocol/text.h"

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i] != NULL; i++) {
		if (strcmp(commands[i]->name, name) == 0) {
			return commands[i];
		}
	}
	return NULL;
}

json_t *command_check(const struct command *command, const json_t *params, struct error *err)
{
	return params_check(command->params, command->name, "", params, err);
}

static bool unknown_method(const char *method, struct error *err)
{
	char shown[PARAMS_SHOWN_BYTES];
	json_t *name = text_json(method, strlen(method));
	params_show(name == NULL ? json_null() : name, shown);
	json_decref(name);
	return error_set(err, ERROR_UNKNOWN_METHOD, "there is no method %s", shown);
}

/* Whether it may run now. */
static bool guard(const struct daemon *daemon, const struct command *command, const char *method,
	struct error *err)
{
	if (command == NULL) {
		return unknown_method(method, err);
	}
	if (command->run == NULL) {
		return error_set(
			err, ERROR_UNSUPPORTED, "%s is not supported by this version", command->name);
	}
	if (daemon->shutdown != DAEMON_RUNS && !command->runs_while_stopping) {
		return error_set(
			err, ERROR_SHUTTING_DOWN, "profd is shutting down, %s is refused", command->name);
	}
	return true;
}

void command_dispatch(void *context, struct request *request, const char *method, json_t *params)
{
	struct daemon *daemon = context;
	struct error err = {0};
	const struct command *command = command_find(method);
	if (!guard(daemon, command, method, &err)) {
		request_fail(request, &err);
		return;
	}
	json_t *checked = command_check(command, params, &err);
	if (checked == NULL) {
		request_fail(request, &err);
		return;
	}
	if (!request_keys_take(daemon, request, command, checked)) {
		command->run(daemon, request, checked);
	}
	json_decref(checked);
}

int64_t command_integer(const json_t *params, const char *name, int64_t fallback)
{
	const json_t *value = json_object_get(params, name);
	return value == NULL ? fallback : json_integer_value(value);
}

bool command_boolean(const json_t *params, const char *name, bool fallback)
{
	const json_t *value = json_object_get(params, name);
	return value == NULL ? fallback : json_is_true(value);
}

const char *command_string(const json_t *params, const char *name, const char *fallback)
{
	const json_t *value = json_object_get(params, name);
	return value == NULL ? fallback : json_string_value(value);
}

int command_signal(const json_t *params, const char *name, int fallback)
{
	const json_t *value = json_object_get(params, name);
	return value == NULL ? fallback : signal_from_json(value);
}
