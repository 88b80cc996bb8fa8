#include <stdlib.h>
#include <string.h>

#include "commands/build.h"
#include "commands/methods.h"
#include "commands/output_text.h"
#include "commands/params.h"
#include "protocol/base64.h"
#include "protocol/limits.h"

/* WriteStdin, ResizePty and GetOutput: what goes into a build and what has come out of it. */

/* What a line has beside the text: its id, which may become six times as long, and the numbers. */
#define ESCAPED_BYTES (LIMIT_LINE_BYTES - 6 * LIMIT_ID_BYTES - 256)

_Static_assert(LIMIT_GET_OUTPUT_BYTES / 3 * 4 + 4 <= ESCAPED_BYTES, "base64 must fit a line");

static bool refuse_data(struct error *err, const char *given)
{
	error_set(err, ERROR_BAD_PARAMS, "WriteStdin needs data or data_b64, and was given %s", given);
	error_detail(err, "missing_parameter");
	return error_hint(err, "send one of the two, or eof true alone");
}

/* The bytes to write; *owned is to be freed by the caller. */
static bool data_of(
	const json_t *params, const char **bytes, size_t *len, char **owned, struct error *err)
{
	const json_t *text = json_object_get(params, "data");
	const json_t *encoded = json_object_get(params, "data_b64");
	if (text != NULL && encoded != NULL) {
		return refuse_data(err, "both");
	}
	if (text == NULL && encoded == NULL) {
		*bytes = "";
		*len = 0;
		return command_boolean(params, "eof", false) || refuse_data(err, "neither");
	}
	if (text != NULL) {
		*bytes = json_string_value(text);
		*len = json_string_length(text);
		return true;
	}
	*owned = malloc(json_string_length(encoded) + 1);
	if (*owned == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
	}
	*bytes = *owned;
	return base64_decode(json_string_value(encoded), json_string_length(encoded), *owned, len) ||
		   params_refuse(err, "data_b64", encoded, "standard base64 with its padding");
}

static void write_stdin(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	const char *bytes = NULL;
	char *owned = NULL;
	size_t len = 0, accepted = 0;
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	if (data_of(params, &bytes, &len, &owned, &err) &&
		process_write(
			process, bytes, len, command_boolean(params, "eof", false), &accepted, &err)) {
		request_reply(request, json_pack("{s:I}", "accepted_bytes", (json_int_t)accepted));
	} else {
		request_fail(request, &err);
	}
	free(owned);
}

static void resize_pty(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	if (process_resize(process, (unsigned)command_integer(params, "rows", 0),
			(unsigned)command_integer(params, "cols", 0), &err)) {
		request_reply(request, NULL);
	} else {
		request_fail(request, &err);
	}
}

static json_t *piece_json(const char *bytes, struct process_piece *piece)
{
	uint64_t behind = piece->offset + piece->len;
	bool is_cut = behind < piece->end;
	bool is_end = !is_cut && piece->has_ended;
	size_t used = 0;
	json_t *result = output_text_answer(bytes, piece->len, is_end, is_cut, ESCAPED_BYTES, &used);
	uint64_t next = piece->offset + used;
	json_t *numbers = json_pack("{s:I,s:I,s:I,s:b}", "offset", (json_int_t)piece->offset,
		"next_offset", (json_int_t)next, "lost_before", (json_int_t)piece->lost_before, "eof",
		piece->has_ended && next == piece->end);
	json_object_update(result, numbers);
	json_decref(numbers);
	return result;
}

static void get_output(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct process *process = build_find_owned(daemon, request, params);
	if (process == NULL) {
		return;
	}
	enum process_stream stream = strcmp(command_string(params, "stream", "stdout"), "stderr") == 0
									 ? PROCESS_STDERR
									 : PROCESS_STDOUT;
	uint64_t offset = (uint64_t)command_integer(params, "offset", 0);
	bool has_offset = json_object_get(params, "offset") != NULL;
	size_t max = (size_t)command_integer(params, "max_bytes", LIMIT_GET_OUTPUT_BYTES);
	char *bytes = malloc(max);
	struct process_piece piece;
	if (bytes == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
		request_fail(request, &err);
	} else if (process_read_output(
				   process, stream, has_offset ? &offset : NULL, bytes, max, &piece, &err)) {
		request_reply(request, piece_json(bytes, &piece));
	} else {
		request_fail(request, &err);
	}
	free(bytes);
}

static const char *const streams[] = {"stdout", "stderr", NULL};

static const struct param write_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = "data", .type = PARAM_STRING, .about = "The text to write; this or data_b64."},
	{.name = "data_b64", .type = PARAM_STRING, .about = "The bytes to write, in base64."},
	{.name = "eof",
		.type = PARAM_BOOLEAN,
		.fallback = "false",
		.about = "Then end standard input, if all was accepted; a terminal gets its end-of-file "
				 "character."},
	{.name = NULL},
};

static const struct param resize_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = "rows",
		.type = PARAM_INTEGER,
		.required = true,
		.min = 1,
		.max = LIMIT_TERMINAL_SIDE,
		.about = "The height in characters; 24 at first."},
	{.name = "cols",
		.type = PARAM_INTEGER,
		.required = true,
		.min = 1,
		.max = LIMIT_TERMINAL_SIDE,
		.about = "The width in characters; 80 at first."},
	{.name = NULL},
};

static const struct param output_params[] = {
	{.name = "build_id", .type = PARAM_ID, .required = true, .about = "The build."},
	{.name = "stream",
		.type = PARAM_ENUM,
		.required = true,
		.choices = streams,
		.about = "Which one; a terminal has stdout alone."},
	{.name = "offset",
		.type = PARAM_INTEGER,
		.min = 0,
		.max = LIMIT_INTEGER,
		.about = "The first byte wanted, from the stream's beginning; left out: the oldest kept."},
	{.name = "max_bytes",
		.type = PARAM_INTEGER,
		.min = 1,
		.max = LIMIT_GET_OUTPUT_BYTES,
		.fallback = "45056",
		.about = "How much at most."},
	{.name = NULL},
};

_Static_assert(LIMIT_GET_OUTPUT_BYTES == 45056, "the table above tells the default as text");

static const char *const write_errors[] = {"build_not_found", "build_not_running", "not_permitted",
	"unsupported", "io", "limit_exceeded", NULL};
static const char *const resize_errors[] = {
	"build_not_found", "build_not_running", "not_permitted", "unsupported", "io", NULL};
static const char *const output_errors[] = {
	"build_not_found", "not_permitted", "unsupported", "io", "limit_exceeded", NULL};

const struct command write_stdin_command = {
	.name = "WriteStdin",
	.params = write_params,
	.run = write_stdin,
	.about = "Writes to a build's standard input, as much as there is room for.",
	.result = "accepted_bytes",
	.errors = write_errors,
	.runs_while_stopping = true,
};

const struct command resize_pty_command = {
	.name = "ResizePty",
	.params = resize_params,
	.run = resize_pty,
	.about = "Changes the size of a build's terminal.",
	.result = "",
	.errors = resize_errors,
	.runs_while_stopping = true,
};

const struct command get_output_command = {
	.name = "GetOutput",
	.params = output_params,
	.run = get_output,
	.about = "Reads what a build has written, as far as it is kept.",
	.result = "data or data_b64, offset, next_offset, lost_before, eof",
	.errors = output_errors,
	.runs_while_stopping = true,
};
