#include "analyzer/export/json.h"

#include "analyzer/export/account.h"
#include "analyzer/export/images.h"
#include "analyzer/export/quality.h"
#include "analyzer/export/values.h"
#include "protocol/text.h"

#define MAX_FUNCTIONS 1000

static json_t *text(const struct json_input *input, uint32_t id)
{
	struct bytes_text bytes = strings_text(input->strings, id);

	return text_json(bytes.data, bytes.len);
}

static json_t *clock_object(const struct json_input *input)
{
	static const char *const names[] = {"monotonic", "mach_continuous", "mach_absolute"};
	const struct model *model = input->model;
	const char *name =
		model->clock < sizeof(names) / sizeof(names[0]) ? names[model->clock] : "unknown";

	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", name, "begin_ns",
		value_number(model->begin_ns), "begin_unix_us", value_number(model->begin_unix_us),
		"first_sample_ns", value_number(model->first_sample_ns), "last_sample_ns",
		value_number(model->last_sample_ns), "end_ns", value_number(model->end_ns));
}

static json_t *process(const struct json_input *input, const struct model_process *item)
{
	json_t *object = json_pack(
		"{s:o,s:o}", "pid", value_number(item->pid), "parent_pid", value_number(item->parent_pid));
	bool done = object != NULL && value_set_text(object, "name", input->strings, item->name) &&
				value_set_text(object, "executable", input->strings, item->executable);

	if (done && item->cpu_ns > 0) {
		done = value_set(object, "cpu_time_ns", value_number(item->cpu_ns));
	}
	if (done && item->cpu_user_ns + item->cpu_system_ns > 0) {
		done = value_set(object, "cpu_user_ns", value_number(item->cpu_user_ns)) &&
			   value_set(object, "cpu_system_ns", value_number(item->cpu_system_ns));
	}
	if (!done) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *processes(const struct json_input *input)
{
	json_t *array = json_array();

	for (size_t i = 0; array != NULL && i < input->model->processes.len; i++) {
		if (json_array_append_new(array, process(input, &input->model->processes.items[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *stacks(const struct json_input *input)
{
	const uint64_t *ends = input->attribution->ends;
	size_t nodes;

	tree_nodes(input->attribution->tree, &nodes);
	return json_pack("{s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}}", "distinct",
		value_number(input->model->stacks.len - 1), "frames",
		value_number(input->model->frames.len), "nodes", value_number(nodes), "max_depth",
		value_number(tree_max_depth(input->attribution->tree)), "ends", "complete",
		value_number(ends[JOURNAL_STACK_COMPLETE]), "unknown",
		value_number(ends[JOURNAL_STACK_UNKNOWN]), "depth", value_number(ends[JOURNAL_STACK_DEPTH]),
		"copy", value_number(ends[JOURNAL_STACK_COPY]), "broken",
		value_number(ends[JOURNAL_STACK_BROKEN]), "no_rule",
		value_number(ends[JOURNAL_STACK_NO_RULE]), "loop", value_number(ends[JOURNAL_STACK_LOOP]),
		"none", value_number(ends[JOURNAL_STACK_NONE]));
}

static json_t *function_json(const struct json_input *input, const struct function *item)
{
	json_t *object = json_object();
	bool done = value_set_text(object, "function", input->strings, item->name) &&
				value_set(object, "kernel", json_boolean(item->kind == TREE_KERNEL)) &&
				value_set(object, "self", value_number(item->self)) &&
				value_set(object, "total", value_number(item->total)) &&
				value_set_text(object, "image", input->strings, item->image);

	if (!done) {
		json_decref(object);
	}
	return done ? object : NULL;
}

static json_t *functions(const struct json_input *input)
{
	const struct functions *list = &input->attribution->functions;
	json_t *array = json_array();

	for (size_t i = 0; array != NULL && i < list->len && i < MAX_FUNCTIONS; i++) {
		json_t *object = function_json(input, &list->items[i]);

		if (object == NULL || json_array_append_new(array, object) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	return array;
}

/* The daemon's warnings first, then ours. */
static json_t *all_warnings(const struct json_input *input)
{
	json_t *array = json_array();
	json_t *told = json_object_get(input->facts, "warnings");

	if (array == NULL || (json_is_array(told) && json_array_extend(array, told) != 0) ||
		(input->warnings != NULL && json_array_extend(array, (json_t *)input->warnings) != 0)) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *document(const struct json_input *input, const struct accounting *accounting)
{
	json_t *object = input->facts == NULL ? json_object() : json_copy((json_t *)input->facts);
	struct {
		const char *name;
		json_t *value;
	} parts[] = {
		{"schema", json_string("profd.capture")},
		{"version", json_integer(1)},
		{"samples", account_samples(input, accounting)},
		{"clock", clock_object(input)},
		{"system", text(input, input->model->system)},
		{"machine", text(input, input->model->machine)},
		{"processes", processes(input)},
		{"threads", account_threads(input, accounting)},
		{"images", images_json(input)},
		{"stacks", stacks(input)},
		{"quality", quality_json(input)},
		{"functions", functions(input)},
		{"warnings", all_warnings(input)},
		{"artifacts",
			input->artifacts == NULL ? json_object() : json_incref((json_t *)input->artifacts)},
	};
	bool done = object != NULL;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		done = json_object_set_new(object, parts[i].name, parts[i].value) == 0 && done;
	}
	if (!done) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int append(const char *bytes, size_t len, void *out)
{
	return buffer_append(out, bytes, len) ? 0 : -1;
}

bool json_write(struct buffer *out, const struct json_input *input)
{
	const struct accounting_terms terms = account_terms(input->facts);
	struct accounting accounting;
	json_t *object =
		accounting_init(&accounting, input->model, &terms) ? document(input, &accounting) : NULL;
	bool done = object != NULL &&
				json_dump_callback(object, append, out,
					JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) == 0 &&
				buffer_byte(out, '\n');

	accounting_finish(&accounting);
	json_decref(object);
	return done;
}
