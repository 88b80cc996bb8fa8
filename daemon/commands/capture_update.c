#include "commands/captures.h"
#include "commands/methods.h"
#include "protocol/limits.h"

/* UpdateCapture. */

static bool update(struct daemon *daemon, const json_t *params, struct error *err)
{
	const char *id = command_string(params, "capture_id", "");
	const char *label = command_string(params, "label", NULL);
	const json_t *pinned = json_object_get(params, "pinned");
	if (label == NULL && pinned == NULL) {
		error_set(
			err, ERROR_BAD_PARAMS, "UpdateCapture needs label or pinned, and was given neither");
		return error_hint(err, "give what is to change");
	}
	int pin = pinned != NULL ? json_is_true(pinned) : -1;
	struct capture *capture = captures_find(daemon->captures, id);
	return capture != NULL ? capture_update(capture, label, pin, err)
						   : store_update(daemon->store, id, label, pin, err);
}

static void update_capture(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	json_t *record = update(daemon, params, &err)
						 ? captures_record(daemon, command_string(params, "capture_id", ""), &err)
						 : NULL;
	if (record != NULL) {
		request_reply(request, record);
	} else {
		request_fail(request, &err);
	}
}

static const struct param params_table[] = {
	{.name = "capture_id",
		.type = PARAM_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "The capture, running or ended."},
	{.name = "label",
		.type = PARAM_STRING,
		.max = LIMIT_LABEL_BYTES,
		.about = "A text for people; an empty one takes the label away."},
	{.name = "pinned",
		.type = PARAM_BOOLEAN,
		.about = "Whether it is kept however old it is and however many there are."},
	{.name = NULL},
};

static const char *const errors[] = {
	"capture_not_found", "io", "disk_full", "limit_exceeded", NULL};

const struct command update_capture_command = {
	.name = "UpdateCapture",
	.params = params_table,
	.run = update_capture,
	.about = "Changes the label of a capture, or pins it.",
	.result = "one record",
	.errors = errors,
	.runs_while_stopping = true,
};
