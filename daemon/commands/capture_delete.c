#include <stdlib.h>
#include <string.h>

#include "commands/methods.h"
#include "protocol/limits.h"
#include "protocol/text.h"

/* DeleteCapture: answers when the files are gone. A client that vanishes meanwhile changes nothing. */
struct deleting {
	struct request *request; /* NULL: nobody waits any more */
};

static void deleted(void *context, const char *left, const struct error *err)
{
	struct deleting *deleting = context;
	struct request *request = deleting->request;
	free(deleting);
	if (request == NULL) {
		return;
	}
	if (err != NULL) {
		request_fail(request, err);
	} else {
		json_t *result = json_object();
		if (left != NULL) {
			text_set(result, "left", left, strlen(left));
		}
		request_reply(request, result);
	}
}

static void delete_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct deleting *deleting = calloc(1, sizeof(*deleting));
	if (deleting == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "no memory to delete a capture");
		request_fail(request, &err);
		return;
	}
	deleting->request = request;
	if (!captures_delete(
			daemon->captures, command_string(params, "capture_id", ""), deleted, deleting, &err)) {
		free(deleting);
		request_fail(request, &err);
		return;
	}
	request_forget_when_gone(request, &deleting->request);
}

static const struct param params_table[] = {
	{.name = "capture_id",
		.type = PARAM_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "The capture; it must have ended."},
	{.name = NULL},
};

static const char *const errors[] = {
	"capture_not_found", "capture_busy", "io", "not_permitted", "limit_exceeded", NULL};

const struct command delete_capture_command = {
	.name = "DeleteCapture",
	.params = params_table,
	.run = delete_capture,
	.about = "Deletes a capture that has ended: its record, its files, and its folder unless "
			 "somebody else's files are in it.",
	.result = "left?: the path of a folder that stays, because there is something in it that is "
			  "not ours",
	.errors = errors,
	.runs_while_stopping = true,
};
