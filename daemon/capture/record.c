#include "capture/record.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "protocol/text.h"

#define SCOPE         "process"
#define SUMMARY_BYTES (32 * 1024) /* with everything else it must fit one line */
#define OPTIONS_BYTES (16 * 1024)
#define TEXT_BYTES    1024                      /* of one text that the analyzer says */
#define SHOWN_BYTES   (LIMIT_LINE_BYTES - 2048) /* leaves room for the message around it */
#define DEPTH         6

/* One more argument, as far as there is room for it. */
static bool add_argument(struct record *record, const char *text, size_t len, size_t *used)
{
	if (*used + len > LIMIT_ARGV_SHOWN_BYTES) {
		len = text_cut(text, LIMIT_ARGV_SHOWN_BYTES - *used);
		record->argv_truncated = true;
	}
	*used += len;
	return text_list_add(&record->argv, text, len);
}

/* Where the program's own begin: an adopted one that is held is a gate still, which has them behind "--" (protocol/gate.h). */
static size_t find_own(const struct process *process, const char *const *argv, size_t count)
{
	size_t i = 0;
	if (!process_is_adopted(process) || process_state(process) != PROCESS_HELD) {
		return 0;
	}
	while (i < count && strcmp(argv[i], "--") != 0) {
		i++;
	}
	return i + 1 < count ? i + 1 : 0;
}

static bool take_argv(struct record *record, const struct process *process)
{
	size_t count, used = 0;
	const char *const *argv = process_argv(process, &count);
	for (size_t i = find_own(process, argv, count); i < count && !record->argv_truncated; i++) {
		if (!add_argument(record, argv[i], strlen(argv[i]), &used)) {
			return false;
		}
	}
	return true;
}

bool record_set_target(struct record *record, const char *arguments, size_t len, const char *cwd)
{
	size_t used = 0;
	record->cwd = strdup(cwd);
	bool ok = record->cwd != NULL;
	while (ok && len > 0 && !record->argv_truncated) {
		size_t length = strnlen(arguments, len);
		ok = add_argument(record, arguments, length, &used);
		length += length < len ? 1 : 0;
		arguments += length;
		len -= length;
	}
	return ok;
}

static size_t json_bytes(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII);
}

bool record_init(struct record *record, const struct process *process, pid_t pid, const char *label,
	const json_t *options)
{
	*record =
		(struct record){.state = "armed", .unwinder = "fp", .pid = pid, .warnings = json_array()};
	bool ok = record->warnings != NULL;
	if (label != NULL) {
		record->label = strdup(label);
		ok = ok && record->label != NULL;
	}
	if (options != NULL && json_bytes(options) <= OPTIONS_BYTES) {
		record->options = json_deep_copy(options);
	}
	if (process != NULL) {
		record->build_id = json_copy((json_t *)process_build_id(process));
		record->cwd = strdup(process_cwd(process));
		ok = ok && take_argv(record, process) && record->build_id != NULL && record->cwd != NULL;
	}
	return ok;
}

void record_finish(struct record *record)
{
	json_decref(record->trace);
	json_decref(record->build_id);
	text_list_finish(&record->argv);
	json_decref(record->options);
	json_decref(record->warnings);
	json_decref(record->summary);
	json_decref(record->error);
	free(record->cwd);
	free(record->label);
	*record = (struct record){0};
}

bool record_update(struct record *record, const char *label, int pinned)
{
	if (label != NULL) {
		char *copy = label[0] != '\0' ? strdup(label) : NULL;
		if (copy == NULL && label[0] != '\0') {
			return false;
		}
		free(record->label);
		record->label = copy;
	}
	record->is_pinned = pinned >= 0 ? pinned != 0 : record->is_pinned;
	return true;
}

void record_set_exit(struct record *record, const struct process *process)
{
	const struct process_exit *end = process_exit(process);
	if (end != NULL && !end->was_observed) {
		record->has_exit = true;
		record->was_signalled = end->was_signalled;
		record->exit_code = end->exit_code;
		record->signal = end->signal;
		record->user_us = end->user_us;
		record->system_us = end->system_us;
	}
}

static void set_text(json_t *object, const char *name, const char *text)
{
	if (text == NULL || !text_set(object, name, text, strlen(text))) {
		json_object_set_new(object, name, json_null());
	}
}

static void set_copy(json_t *object, const char *name, const json_t *value)
{
	json_object_set_new(object, name, value != NULL ? json_deep_copy(value) : json_null());
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
	uint64_t limit = (uint64_t)LIMIT_INTEGER;
	json_object_set_new(object, name, json_integer((json_int_t)(value < limit ? value : limit)));
}

void record_warn(struct record *record, const char *code, const char *message, const char *hint)
{
	if (json_array_size(record->warnings) >= LIMIT_EVENT_LIST) {
		return;
	}
	json_t *warning = json_object();
	set_text(warning, "code", code);
	set_text(warning, "message", message);
	if (hint != NULL && hint[0] != '\0') {
		set_text(warning, "hint", hint);
	}
	json_array_append_new(record->warnings, warning);
}

/* A copy whose texts, lists and depth are bounded. */
static json_t *bounded(const json_t *value, int depth)
{
	if (json_is_string(value)) {
		const char *text = json_string_value(value);
		size_t len = json_string_length(value);
		return text_json(text, len > TEXT_BYTES ? text_cut(text, TEXT_BYTES) : len);
	}
	if (!json_is_object(value) && !json_is_array(value)) {
		return json_deep_copy(value);
	}
	if (depth == 0) {
		return json_null();
	}
	const char *key;
	size_t i;
	json_t *item;
	json_t *copy = json_is_array(value) ? json_array() : json_object();
	json_array_foreach(value, i, item)
	{
		if (i < LIMIT_EVENT_LIST) {
			json_array_append_new(copy, bounded(item, depth - 1));
		}
	}
	json_object_foreach((json_t *)value, key, item)
	{
		if (json_object_size(copy) < 2 * LIMIT_EVENT_LIST && strlen(key) <= 64) {
			json_object_set_new(copy, key, bounded(item, depth - 1));
		}
	}
	return copy;
}

static void take_warnings(struct record *record, const json_t *warnings)
{
	size_t i;
	json_t *warning;
	json_array_foreach(warnings, i, warning)
	{
		json_t *copy = bounded(warning, 1);
		const char *code = json_string_value(json_object_get(copy, "code"));
		const char *message = json_string_value(json_object_get(copy, "message"));
		if (code != NULL && message != NULL) {
			record_warn(record, code, message, json_string_value(json_object_get(copy, "hint")));
		}
		json_decref(copy);
	}
}

/* A number that is there and counts something. */
static bool take_count(const json_t *body, const char *name, uint64_t *value)
{
	const json_t *number = json_object_get(body, name);
	if (!json_is_integer(number) || json_integer_value(number) < 0) {
		return false;
	}
	*value = (uint64_t)json_integer_value(number);
	return true;
}

bool record_take_done(struct record *record, const json_t *body, struct error *err)
{
	uint64_t samples, lost, threads, truncated;
	const json_t *summary = json_object_get(body, "summary");
	if (!take_count(body, "samples", &samples) || !take_count(body, "lost", &lost) ||
		!take_count(body, "threads", &threads) || !take_count(body, "truncated", &truncated) ||
		!json_is_object(summary)) {
		return error_set(err, ERROR_INTERNAL, "the analyzer's result lacks its counts or summary");
	}
	json_t *copy = bounded(summary, DEPTH);
	if (json_bytes(copy) > SUMMARY_BYTES) {
		json_decref(copy);
		return error_set(
			err, ERROR_INTERNAL, "the analyzer's summary is larger than %d bytes", SUMMARY_BYTES);
	}
	json_decref(record->summary);
	record->summary = copy;
	record->samples = samples;
	record->lost = lost > record->lost ? lost : record->lost;
	record->threads = threads;
	record->truncated = truncated;
	take_warnings(record, json_object_get(body, "warnings"));
	return true;
}

static void set_identity(json_t *object, const struct record *record)
{
	set_text(object, "capture_id", record->id);
	set_copy(object, "build_id", record->build_id);
	set_count(object, "pid", (uint64_t)record->pid);
}

static void set_path(
	json_t *object, const char *name, const struct record *record, enum artifact artifact)
{
	char path[PATH_MAX + 64];
	if (record->artifacts == NULL || !record->artifacts->files[artifact].is_complete) {
		json_object_set_new(object, name, json_null());
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", record->folder, artifact_name(artifact));
	set_text(object, name, path);
}

static json_t *artifact_list(const struct record *record)
{
	json_t *list = json_array();
	for (int i = 0; record->artifacts != NULL && i < ARTIFACT_KINDS; i++) {
		if (record->artifacts->files[i].is_complete) {
			json_t *item = json_object();
			set_text(item, "name", artifact_name((enum artifact)i));
			set_path(item, "path", record, (enum artifact)i);
			set_count(item, "bytes", record->artifacts->files[i].bytes);
			json_array_append_new(list, item);
		}
	}
	return list;
}

static void set_trace(json_t *object, const struct record *record)
{
	json_t *copy = json_deep_copy(record->trace);
	json_object_update(object, copy);
	json_decref(copy);
}

static void set_result(json_t *object, const struct record *record)
{
	set_text(object, "reason", record->reason);
	if (record->trace != NULL) {
		set_trace(object, record);
		set_copy(object, "warnings", record->warnings);
		return;
	}
	set_count(object, "samples", record->samples);
	set_count(object, "lost", record->lost);
	set_path(object, "folded_path", record, ARTIFACT_IS_FOLDED);
	set_path(object, "svg_path", record, ARTIFACT_IS_SVG);
	set_path(object, "metadata_path", record, ARTIFACT_IS_JSON);
	json_object_set_new(object, "artifacts", artifact_list(record));
	set_copy(object, "summary", record->summary);
	set_copy(object, "warnings", record->warnings);
}

static void set_effective(json_t *object, const struct record *record)
{
	set_text(object, "sampler", record->effective.name);
	set_text(object, "unwinder", record->unwinder);
	set_count(object, "hz", record->effective.hz);
	set_count(object, "period_ns", record->effective.period_ns);
	set_text(object, "scope", SCOPE);
	json_object_set_new(object, "kernel_sampled", json_boolean(record->effective.kernel_sampled));
}

static void set_time(json_t *object, const char *name, uint64_t unix_us)
{
	if (unix_us == 0) {
		json_object_set_new(object, name, json_null());
	} else {
		set_count(object, name, unix_us);
	}
}

static void set_target(json_t *object, const struct record *record)
{
	text_list_set(&record->argv, object, "argv");
	if (record->argv_truncated) {
		json_object_set_new(object, "argv_truncated", json_true());
	}
	set_text(object, "cwd", record->cwd);
	json_object_set_new(object, "exit_code",
		record->has_exit && !record->was_signalled ? json_integer(record->exit_code) : json_null());
	char name[32];
	const char *known = record->was_signalled ? sigabbrev_np(record->signal) : NULL;
	if (known != NULL) {
		snprintf(name, sizeof(name), "SIG%s", known);
	} else {
		snprintf(name, sizeof(name), "SIG%d", record->signal);
	}
	set_text(object, "signal", record->was_signalled ? name : NULL);
}

/* 0 of both: it is not known any more. */
static void set_usage(json_t *object, const struct record *record)
{
	if (record->has_exit && record->user_us + record->system_us > 0) {
		set_count(object, "user_us", record->user_us);
		set_count(object, "system_us", record->system_us);
	}
}

/* What could be long goes, the least wanted first, until the object fits one line. */
static json_t *fit(json_t *object)
{
	static const char *const long_members[] = {
		"options", "argv_b64", "argv", "warnings", "summary"};
	for (size_t i = 0; i < sizeof(long_members) / sizeof(long_members[0]); i++) {
		if (json_bytes(object) <= SHOWN_BYTES) {
			break;
		}
		if (json_object_get(object, long_members[i]) != NULL) {
			json_object_set_new(object, long_members[i], json_null());
		}
	}
	return object;
}

json_t *record_to_json(const struct record *record)
{
	json_t *object = json_object();
	set_identity(object, record);
	set_text(object, "kind", record->trace != NULL ? "gpu" : "sampling");
	set_text(object, "state", record->state);
	set_text(object, "label", record->label);
	json_object_set_new(object, "pinned", json_boolean(record->is_pinned));
	set_target(object, record);
	set_time(object, "started_unix_us", record->started_unix_us);
	set_time(object, "ended_unix_us", record->ended_unix_us);
	if (record->trace == NULL) {
		set_effective(object, record);
		set_count(object, "rings_bytes", record->effective.ring_bytes);
		set_count(object, "cpus", record->effective.cpus);
	}
	set_usage(object, record);
	set_copy(object, "options", record->options);
	set_text(object, "folder", record->folder);
	set_result(object, record);
	if (record->error != NULL) {
		set_copy(object, "error", record->error);
	}
	return fit(object);
}

json_t *record_effective(const struct record *record)
{
	json_t *object = json_object();
	set_text(object, "capture_id", record->id);
	set_text(object, "state", record->state);
	if (record->trace != NULL) {
		set_trace(object, record);
	} else {
		set_effective(object, record);
	}
	set_copy(object, "warnings", record->warnings);
	return object;
}

json_t *record_facts(const struct record *record)
{
	json_t *target = json_object();
	set_count(target, "pid", (uint64_t)record->pid);
	set_target(target, record);
	set_usage(target, record);
	json_t *effective = json_object();
	set_effective(effective, record);
	json_object_set_new(effective, "kernel", json_boolean(record->effective.kernel_frames));
	set_count(effective, "rings_bytes", record->effective.ring_bytes);
	set_count(effective, "cpus", record->effective.cpus);
	json_t *object = json_pack("{s:s, s:i}", "schema", "profd.capture", "version", 1);
	set_text(object, "capture_id", record->id);
	set_copy(object, "build_id", record->build_id);
	set_text(object, "label", record->label);
	json_object_set_new(object, "target", target);
	set_copy(object, "options", record->options);
	json_object_set_new(object, "effective", effective);
	set_text(object, "reason", record->reason);
	set_time(object, "started_unix_us", record->started_unix_us);
	set_time(object, "ended_unix_us", record->ended_unix_us);
	set_count(object, "duration_ms", record->elapsed_ms);
	set_text(object, "server_version", PROFD_VERSION);
	set_copy(object, "warnings", record->warnings);
	return object;
}

json_t *record_started(const struct record *record)
{
	json_t *object = json_object();
	set_identity(object, record);
	if (record->trace != NULL) {
		set_trace(object, record);
		return object;
	}
	set_count(object, "hz", record->effective.hz);
	set_text(object, "sampler", record->effective.name);
	set_text(object, "unwinder", record->unwinder);
	return object;
}

json_t *record_finished(const struct record *record)
{
	json_t *object = json_object();
	set_identity(object, record);
	set_text(object, "label", record->label);
	set_result(object, record);
	return fit(object);
}

json_t *record_failed(const struct record *record)
{
	json_t *object = json_object();
	set_identity(object, record);
	set_text(object, "label", record->label);
	set_copy(object, "error", record->error);
	return object;
}

json_t *record_progress(const struct record *record, uint64_t elapsed_ms, int permille)
{
	json_t *object = json_object();
	set_text(object, "capture_id", record->id);
	set_copy(object, "build_id", record->build_id);
	set_text(object, "state", record->state);
	set_count(object, "elapsed_ms", elapsed_ms);
	set_time(object, "duration_ms", record->duration_ms);
	set_count(object, "samples", record->samples);
	set_count(object, "lost", record->lost);
	set_count(object, "threads", record->threads);
	set_count(object, "stacks", record->stacks);
	set_count(object, "truncated", record->truncated);
	json_object_set_new(object, "permille", permille >= 0 ? json_integer(permille) : json_null());
	return object;
}

json_t *record_trace_progress(
	const struct record *record, uint64_t elapsed_ms, int64_t frame, uint64_t bytes)
{
	json_t *object = json_object();
	set_text(object, "capture_id", record->id);
	set_copy(object, "build_id", record->build_id);
	set_text(object, "state", record->state);
	set_count(object, "elapsed_ms", elapsed_ms);
	json_object_set_new(object, "frame", frame >= 0 ? json_integer(frame) : json_null());
	set_count(object, "bytes", bytes);
	return object;
}
