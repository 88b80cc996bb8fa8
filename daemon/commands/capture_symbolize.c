#include <stdlib.h>

#include "commands/methods.h"
#include "protocol/limits.h"

/* SymbolizeCapture: answers when the artifacts are written anew. A client that vanishes, or cancels, only does not hear of it. */
struct naming {
	struct request *request; /* NULL: nobody waits any more */
};

static void symbolized(void *context, const json_t *record, const struct error *err)
{
	struct naming *naming = context;
	struct request *request = naming->request;
	free(naming);
	if (request == NULL) {
		return;
	}
	if (err != NULL) {
		request_fail(request, err);
	} else {
		request_reply(request, json_incref((json_t *)record));
	}
}

static void symbolize_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct naming *naming = calloc(1, sizeof(*naming));
	if (naming == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "no memory to name a capture again");
		request_fail(request, &err);
		return;
	}
	naming->request = request;
	if (!captures_symbolize(
			daemon->captures, command_string(params, "capture_id", ""), symbolized, naming, &err)) {
		free(naming);
		request_fail(request, &err);
		return;
	}
	request_forget_when_gone(request, &naming->request);
	request_allow_cancel(request);
}

static const struct param params_table[] = {
	{.name = "capture_id",
		.type = PARAM_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "The capture; it must have ended."},
	{.name = "symbol_path",
		.type = PARAM_STRINGS,
		.is_unsupported = true,
		.about = "Folders with symbols."},
	{.name = "debuginfod",
		.type = PARAM_BOOLEAN,
		.is_unsupported = true,
		.fallback = "false",
		.about = "Fetch symbols over the network."},
	{.name = NULL},
};

static const char *const errors[] = {"capture_not_found", "capture_busy", "no_samples",
	"unsupported", "io", "disk_full", "limit_exceeded", "shutting_down", "internal", NULL};

const struct command symbolize_capture_command = {
	.name = "SymbolizeCapture",
	.params = params_table,
	.run = symbolize_capture,
	.about = "Makes a capture's names again from the files that are still there and what was known "
			 "before, and its artifacts from them; answers when they are complete.",
	.result = "the final record",
	.errors = errors,
};
