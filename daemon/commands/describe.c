#include <string.h>

#include "commands/methods.h"
#include "commands/page.h"
#include "commands/params.h"
#include "protocol/limits.h"
#include "protocol/names.h"

#define TRACE_MEMBERS                                                                              \
	"backend, backend_version, trace_kind, frame_by, start_frame, end_frame, frames, "             \
	"duration_ms, timeout_ms, first_frame, last_frame, traced_pid, traced_exe, device, "           \
	"started_mono_us, trace_path, artifacts, shaders, verified"

/* What every event carries beside seq. */
static const struct {
	const char *name, *class, *members;
} event_rows[] = {
	{EVENT_PROCESS_STARTED, "lossless", "build_id, pid"},
	{EVENT_PROCESS_OUTPUT, "droppable", "build_id, stream, offset, data or data_b64"},
	{EVENT_PROCESS_EXITED, "lossless",
		"build_id, exit_code, signal, core_dumped, user_us, system_us, max_rss_bytes, error?"},
	{EVENT_SAMPLING_PROFILE_STARTED, "lossless",
		"capture_id, build_id, pid, hz, sampler, unwinder"},
	{EVENT_SAMPLING_PROFILE_PROGRESS, "latest",
		"capture_id, build_id, state, elapsed_ms, duration_ms, samples, lost, threads, stacks, "
		"truncated, permille"},
	{EVENT_SAMPLING_PROFILE_FINISHED, "lossless",
		"capture_id, build_id, pid, reason, samples, lost, folded_path, svg_path, metadata_path, "
		"artifacts, summary, warnings, label"},
	{EVENT_SAMPLING_PROFILE_FAILED, "lossless", "capture_id, build_id, pid, error, label"},
	{EVENT_GPU_TRACE_STARTED, "lossless", "capture_id, build_id, pid, " TRACE_MEMBERS},
	{EVENT_GPU_TRACE_PROGRESS, "latest", "capture_id, build_id, state, elapsed_ms, frame, bytes"},
	{EVENT_GPU_TRACE_FINISHED, "lossless",
		"capture_id, build_id, pid, label, reason, " TRACE_MEMBERS ", warnings"},
	{EVENT_GPU_TRACE_FAILED, "lossless", "capture_id, build_id, pid, error, label"},
	{EVENT_CAPTURE_RECOVERED, "lossless", "capture_id"},
	{EVENT_EVENTS_DROPPED, "lossless", "counts"},
	{EVENT_DAEMON_STOPPING, "lossless", ""},
};

static json_t *strings(const char *const *list)
{
	json_t *array = json_array();
	for (; list != NULL && *list != NULL; list++) {
		json_array_append_new(array, json_string(*list));
	}
	return array;
}

static json_t *params_json(const struct param *table);

static bool has_range(const struct param *param)
{
	return !param->is_unsupported &&
		   (param->type == PARAM_INTEGER || param->type == PARAM_STRINGS ||
			   param->type == PARAM_STRING);
}

static json_t *param_json(const struct param *param)
{
	json_t *object = json_pack("{s:s,s:s,s:b,s:b,s:s}", "name", param->name, "type",
		params_type_name(param->type), "required", param->required, "supported",
		!param->is_unsupported, "about", param->about);
	if (has_range(param)) {
		int64_t max =
			param->type == PARAM_STRING && param->max == 0 ? LIMIT_REQUEST_BYTES : param->max;
		json_object_set_new(object, "min", json_integer(param->min));
		json_object_set_new(object, "max", json_integer(max));
	}
	if (param->choices != NULL) {
		json_object_set_new(object, "choices", strings(param->choices));
	}
	if (param->later != NULL) {
		json_object_set_new(object, "unsupported_choices", strings(param->later));
	}
	if (param->fallback != NULL) {
		json_object_set_new(object, "default", json_loads(param->fallback, JSON_DECODE_ANY, NULL));
	}
	if (param->members != NULL) {
		json_object_set_new(object, "members", params_json(param->members));
	}
	return object;
}

static json_t *params_json(const struct param *table)
{
	json_t *array = json_array();
	for (; table != NULL && table->name != NULL; table++) {
		json_array_append_new(array, param_json(table));
	}
	return array;
}

static json_t *method_json(const struct command *command)
{
	bool is_supported = command->run != NULL;
	json_t *object = json_pack(
		"{s:s,s:s,s:b}", "name", command->name, "about", command->about, "supported", is_supported);
	if (is_supported && object != NULL) {
		json_object_set_new(object, "params", params_json(command->params));
		json_object_set_new(object, "result", json_string(command->result));
		json_object_set_new(object, "events", strings(command->events));
		json_object_set_new(object, "errors", strings(command->errors));
	}
	return object;
}

static json_t *events_json(void)
{
	json_t *array = json_array();
	for (size_t i = 0; i < sizeof(event_rows) / sizeof(event_rows[0]); i++) {
		json_array_append_new(array, json_pack("{s:s,s:s,s:s}", "name", event_rows[i].name, "class",
										 event_rows[i].class, "members", event_rows[i].members));
	}
	return array;
}

static json_t *errors_json(void)
{
	json_t *array = json_array();
	for (int code = ERROR_NONE + 1; code < ERROR_COUNT; code++) {
		json_array_append_new(
			array, json_pack("{s:s,s:i,s:b,s:s}", "code", error_code_name((enum error_code)code),
					   "number", error_code_number((enum error_code)code), "retryable",
					   error_code_retryable((enum error_code)code), "hint",
					   error_code_hint((enum error_code)code)));
	}
	return array;
}

static size_t size_of(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII);
}

/* The methods from *first on; events and errors stand on the first page. */
static json_t *page_from(size_t first)
{
	json_t *events = first == 0 ? events_json() : NULL;
	json_t *errors = first == 0 ? errors_json() : NULL;
	struct page page;
	page_init(&page, size_of(events) + size_of(errors) + LIMIT_ID_BYTES);
	size_t next = first;
	while (commands[next] != NULL && page_add(&page, method_json(commands[next]))) {
		next++;
	}
	json_t *result =
		page_finish(&page, "methods", commands[next] == NULL ? NULL : commands[next]->name);
	if (first == 0 && result != NULL) {
		json_object_set_new(result, "events", events);
		json_object_set_new(result, "errors", errors);
	}
	return result;
}

/* The place of a method in the table; the table's length when there is none. */
static size_t index_of(const char *name)
{
	size_t index = 0;
	while (commands[index] != NULL && strcmp(commands[index]->name, name) != 0) {
		index++;
	}
	return index;
}

static void describe(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)daemon;
	const char *method = command_string(params, "method", NULL);
	const char *cursor = command_string(params, "cursor", NULL);
	const char *name = method != NULL ? method : cursor;
	size_t index = name == NULL ? 0 : index_of(name);
	struct error err = {0};
	if (commands[index] == NULL) {
		params_refuse(&err, method != NULL ? "method" : "cursor",
			json_object_get(params, method != NULL ? "method" : "cursor"),
			method != NULL ? "the name of a method" : "next_cursor of the page before");
		request_fail(request, &err);
	} else if (method != NULL) {
		request_reply(request, json_pack("{s:[o]}", "methods", method_json(commands[index])));
	} else {
		request_reply(request, page_from(index));
	}
}

static const struct param params_table[] = {
	{.name = "method",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Only this method; left out: everything."},
	{.name = "cursor",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "next_cursor of the page before."},
	{.name = NULL},
};

const struct command describe_command = {
	.name = "Describe",
	.params = params_table,
	.run = describe,
	.about = "Says what the daemon's methods take and give.",
	.result =
		"methods [{name, about, supported, params, result, events, errors}], "
		"events [{name, class, members}], errors [{code, number, retryable, hint}], next_cursor?",
	.runs_while_stopping = true,
};
