#include "analyzer/export/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "protocol/limits.h"
#include "protocol/text.h"

#define MAX_FUNCTIONS 1000
/* Hidden losses: a profile that saw less than this of the CPU time is told to be so. */
#define LOW_SHARE  0.95
#define HIGH_SHARE 1.05

/* An index with what it is sorted by. */
struct ranked {
	uint64_t samples;
	uint32_t index;
};

/* jansson's integers are signed; JavaScript's are exact to 2^53. */
static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)(value < LIMIT_INTEGER ? value : LIMIT_INTEGER));
}

static json_t *share(uint64_t part, uint64_t whole)
{
	double value = whole == 0 ? 0.0 : (double)part / (double)whole;

	return json_real((double)(uint64_t)(value * 1e4 + 0.5) / 1e4);
}

static json_t *text(const struct json_input *input, uint32_t id)
{
	struct bytes_text bytes = strings_text(input->strings, id);

	return text_json(bytes.data, bytes.len);
}

/* False: memory is out. */
static bool set_text(const struct json_input *input, json_t *object, const char *name, uint32_t id)
{
	struct bytes_text bytes = strings_text(input->strings, id);

	return id == 0 || text_set(object, name, bytes.data, bytes.len);
}

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left;
	const struct ranked *b = right;

	if (a->samples != b->samples) {
		return a->samples > b->samples ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

static const char *unit_name(uint64_t unit)
{
	static const char *const names[] = {"nanoseconds", "count", "bytes", "cycles"};

	return unit < sizeof(names) / sizeof(names[0]) ? names[unit] : "unknown";
}

/* Explains a difference between samples and the kernel's accounting; NULL: there is none worth it. */
static const char *share_hint(const struct json_input *input, uint64_t sampled, uint64_t cpu)
{
	double part = cpu == 0 ? 1.0 : (double)sampled / (double)cpu;

	if (part < LOW_SHARE && model_lost(input->model) > 0) {
		return "samples were lost: see lost_by_cause";
	}
	if (part < LOW_SHARE) {
		return "CPU time that is not in the samples: time in the kernel that may not be sampled, "
			   "threads that ran shorter than a period, or a rate that the system did not keep";
	}
	return part > HIGH_SHARE ? "more samples than CPU time: sampling ran with an uneven period"
							 : NULL;
}

static bool add_times(const struct json_input *input, json_t *object)
{
	const struct model *model = input->model;
	uint64_t sampled = model_samples(model) * model_period(model);
	uint64_t cpu = model_cpu_ns(model);

	if (model->metrics.len == 0 || model->metrics.items[0].unit != JOURNAL_UNIT_NANOSECONDS) {
		return true;
	}
	bool done = json_object_set_new(object, "sampled_ns", number(sampled)) == 0;

	if (cpu > 0) {
		const char *hint = share_hint(input, sampled, cpu);

		done = done && json_object_set_new(object, "cpu_time_ns", number(cpu)) == 0 &&
			   json_object_set_new(object, "sampled_share", share(sampled, cpu)) == 0 &&
			   (hint == NULL || json_object_set_new(object, "hint", json_string(hint)) == 0);
	}
	return done;
}

static json_t *samples(const struct json_input *input)
{
	const struct model *model = input->model;
	uint64_t others = 0;

	for (size_t i = 1; i < model->metrics.len; i++) {
		others += model->metrics.items[i].samples;
	}
	json_t *object = json_pack("{s:o,s:o,s:{s:o,s:o,s:o,s:o},s:o,s:o,s:s,s:s,s:o}", "count",
		number(model_samples(model)), "lost", number(model_lost(model)), "lost_by_cause", "ring",
		number(model->lost[JOURNAL_LOSS_RING]), "malformed",
		number(model->lost[JOURNAL_LOSS_MALFORMED]), "memory",
		number(model->lost[JOURNAL_LOSS_MEMORY]), "disk", number(model->lost[JOURNAL_LOSS_DISK]),
		"throttled", number(model->lost[JOURNAL_LOSS_THROTTLED]), "other_metrics", number(others),
		"unit", "samples", "weight_unit",
		unit_name(model->metrics.len > 0 ? model->metrics.items[0].unit : UINT64_MAX), "period",
		number(model_period(model)));

	if (object == NULL || !add_times(input, object)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *clock_object(const struct json_input *input)
{
	static const char *const names[] = {"monotonic", "mach_continuous", "mach_absolute"};
	const struct model *model = input->model;
	const char *name =
		model->clock < sizeof(names) / sizeof(names[0]) ? names[model->clock] : "unknown";

	return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "name", name, "begin_ns", number(model->begin_ns),
		"begin_unix_us", number(model->begin_unix_us), "first_sample_ns",
		number(model->first_sample_ns), "last_sample_ns", number(model->last_sample_ns), "end_ns",
		number(model->end_ns));
}

static json_t *process(const struct json_input *input, const struct model_process *item)
{
	json_t *object =
		json_pack("{s:o,s:o}", "pid", number(item->pid), "parent_pid", number(item->parent_pid));
	bool done = object != NULL && set_text(input, object, "name", item->name) &&
				set_text(input, object, "executable", item->executable);

	if (done && item->cpu_ns > 0) {
		done = json_object_set_new(object, "cpu_time_ns", number(item->cpu_ns)) == 0;
	}
	if (done && item->cpu_user_ns + item->cpu_system_ns > 0) {
		done = json_object_set_new(object, "cpu_user_ns", number(item->cpu_user_ns)) == 0 &&
			   json_object_set_new(object, "cpu_system_ns", number(item->cpu_system_ns)) == 0;
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

static json_t *thread(const struct json_input *input, uint32_t index)
{
	const struct model_thread *item = &input->model->threads.items[index];
	json_t *object = json_pack("{s:o,s:o,s:o}", "tid", number(item->tid), "pid", number(item->pid),
		"samples", number(item->samples));
	bool done = object != NULL &&
				set_text(input, object, "name", model_thread_name(input->model, item)) &&
				(item->cpu_ns == 0 ||
					json_object_set_new(object, "cpu_time_ns", number(item->cpu_ns)) == 0);

	if (!done) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *threads(const struct json_input *input)
{
	size_t count = input->model->threads.len;
	struct ranked *ranked = calloc(count + 1, sizeof(*ranked));
	json_t *array = ranked == NULL ? NULL : json_array();

	for (size_t i = 0; ranked != NULL && i < count; i++) {
		ranked[i] = (struct ranked){input->model->threads.items[i].samples, (uint32_t)i};
	}
	if (count > 1 && ranked != NULL) {
		qsort(ranked, count, sizeof(*ranked), compare_ranked);
	}
	for (size_t i = 0; array != NULL && i < count; i++) {
		if (json_array_append_new(array, thread(input, ranked[i].index)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	free(ranked);
	return array;
}

static const char *kind_name(uint64_t kind)
{
	static const char *const names[] = {
		"unknown", "elf", "macho", "dyld_cache", "vdso", "kernel", "anonymous"};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}

static const char *symbols_name(enum symbols_state state)
{
	return state == SYMBOLS_SYMTAB ? "symtab" : state == SYMBOLS_DYNSYM ? "dynsym" : "none";
}

/* What would give names; NULL: nothing is missing, or nothing would help. */
static const char *fix_of(
	const struct model_image *image, enum symbols_state state, uint64_t unnamed)
{
	if (unnamed == 0) {
		return NULL;
	}
	if (image->kind == JOURNAL_IMAGE_ANONYMOUS) {
		return "generated code has no file: let the run time write its JIT map";
	}
	switch (state) {
	case SYMBOLS_NOT_OPENED:
		return "the file could not be opened while the program ran: check its permissions";
	case SYMBOLS_CHANGED:
		return "the file was replaced since it was mapped: record again";
	case SYMBOLS_NONE:
	case SYMBOLS_DYNSYM:
		return "the file is stripped: install its debug symbols, or link without -s";
	default:
		return NULL;
	}
}

static bool set_hex(json_t *object, const char *name, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char hex[MODEL_BUILD_ID_BYTES * 2 + 1];

	for (size_t i = 0; i < len; i++) {
		hex[i * 2] = digits[bytes[i] >> 4];
		hex[i * 2 + 1] = digits[bytes[i] & 15];
	}
	hex[len * 2] = '\0';
	return json_object_set_new(object, name, json_string(hex)) == 0;
}

static bool set_build_id(const struct json_input *input, json_t *object, uint32_t index)
{
	const struct model_image *image = &input->model->images.items[index];
	size_t len = image->build_id_bytes;
	const uint8_t *id = len > 0 ? image->build_id : symbols_build_id(input->symbols, index, &len);

	return id == NULL || set_hex(object, "build_id", id, len);
}

static json_t *image(const struct json_input *input, uint32_t index)
{
	const struct model_image *item = &input->model->images.items[index];
	const struct attribution_image *counts = &input->attribution->images[index];
	enum symbols_state state = symbols_state(input->symbols, index);
	const char *fix = fix_of(item, state, counts->unnamed);
	json_t *object = json_pack("{s:s,s:o,s:b,s:s,s:o}", "kind", kind_name(item->kind), "samples",
		number(counts->samples), "opened", (int)item->was_opened, "symbols", symbols_name(state),
		"unsymbolized", share(counts->unnamed, counts->frames));

	if (object == NULL || !set_text(input, object, "path", item->path) ||
		!set_build_id(input, object, index) ||
		(fix != NULL && json_object_set_new(object, "fix", json_string(fix)) != 0)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *images(const struct json_input *input)
{
	VEC(struct ranked) ranked = {0};
	bool done = true;

	for (size_t i = 0; done && i < input->model->images.len; i++) {
		const struct ranked item = {input->attribution->images[i].samples, (uint32_t)i};

		done = item.samples == 0 || VEC_PUSH(&ranked, item);
	}
	if (ranked.len > 1) {
		qsort(ranked.items, ranked.len, sizeof(*ranked.items), compare_ranked);
	}
	json_t *array = done ? json_array() : NULL;

	for (size_t i = 0; array != NULL && i < ranked.len; i++) {
		if (json_array_append_new(array, image(input, ranked.items[i].index)) != 0) {
			json_decref(array);
			array = NULL;
		}
	}
	VEC_FINISH(&ranked);
	return array;
}

static json_t *stacks(const struct json_input *input)
{
	const uint64_t *ends = input->attribution->ends;
	size_t nodes;

	tree_nodes(input->attribution->tree, &nodes);
	return json_pack("{s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:o}}", "distinct",
		number(input->model->stacks.len - 1), "frames", number(input->model->frames.len), "nodes",
		number(nodes), "max_depth", number(tree_max_depth(input->attribution->tree)), "ends",
		"complete", number(ends[JOURNAL_STACK_COMPLETE]), "unknown",
		number(ends[JOURNAL_STACK_UNKNOWN]), "depth", number(ends[JOURNAL_STACK_DEPTH]), "copy",
		number(ends[JOURNAL_STACK_COPY]), "broken", number(ends[JOURNAL_STACK_BROKEN]), "none",
		number(ends[JOURNAL_STACK_NONE]));
}

json_t *json_quality(const struct attribution *attribution)
{
	uint64_t count = attribution->samples;

	return json_pack("{s:o,s:o,s:o,s:o}", "complete", share(attribution->complete, count),
		"stitched", share(attribution->stitched, count), "truncated",
		share(attribution->truncated, count), "unsymbolized",
		share(attribution->unnamed, attribution->frames));
}

static json_t *function_json(const struct json_input *input, const struct function *item)
{
	json_t *object = json_object();
	bool done =
		set_text(input, object, "function", item->name) &&
		json_object_set_new(object, "kernel", json_boolean(item->kind == TREE_KERNEL)) == 0 &&
		json_object_set_new(object, "self", number(item->self)) == 0 &&
		json_object_set_new(object, "total", number(item->total)) == 0 &&
		set_text(input, object, "image", item->image);

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

static json_t *document(const struct json_input *input)
{
	json_t *object = input->facts == NULL ? json_object() : json_copy((json_t *)input->facts);
	struct {
		const char *name;
		json_t *value;
	} parts[] = {
		{"schema", json_string("profd.capture")},
		{"version", json_integer(1)},
		{"samples", samples(input)},
		{"clock", clock_object(input)},
		{"system", text(input, input->model->system)},
		{"machine", text(input, input->model->machine)},
		{"processes", processes(input)},
		{"threads", threads(input)},
		{"images", images(input)},
		{"stacks", stacks(input)},
		{"quality", json_quality(input->attribution)},
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
	json_t *object = document(input);
	bool done = object != NULL &&
				json_dump_callback(object, append, out,
					JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) == 0 &&
				buffer_byte(out, '\n');

	json_decref(object);
	return done;
}
