#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/record.h"
#include "capture/trace_record.h"
#include "protocol/limits.h"

/* A record made again from what was kept of it: a file of any content. */

#define TEXT_BYTES 4096

static uint64_t count_of(const json_t *kept, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(kept, name));
	return value > 0 && value <= LIMIT_INTEGER ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *kept, const char *name, size_t max_bytes)
{
	const char *text = json_string_value(json_object_get(kept, name));
	return text != NULL && strlen(text) <= max_bytes ? text : NULL;
}

static bool copy_text(const json_t *kept, const char *name, char **out)
{
	const char *text = text_of(kept, name, TEXT_BYTES);
	*out = text != NULL ? strdup(text) : NULL;
	return text == NULL || *out != NULL;
}

static json_t *copy_of(const json_t *kept, const char *name, json_type type)
{
	const json_t *value = json_object_get(kept, name);
	return value != NULL && json_typeof(value) == type ? json_deep_copy(value) : NULL;
}

static void restore_exit(struct record *record, const json_t *kept)
{
	const json_t *exit_code = json_object_get(kept, "exit_code");
	record->user_us = count_of(kept, "user_us");
	record->system_us = count_of(kept, "system_us");
	const char *name = json_string_value(json_object_get(kept, "signal"));
	if (json_is_integer(exit_code)) {
		record->has_exit = true;
		record->exit_code = (int)json_integer_value(exit_code);
	}
	for (int i = 1; name != NULL && strncmp(name, "SIG", 3) == 0 && i < NSIG; i++) {
		const char *known = sigabbrev_np(i);
		if (known != NULL && strcmp(known, name + 3) == 0) {
			record->has_exit = record->was_signalled = true;
			record->signal = i;
		}
	}
}

static void restore_warnings(struct record *record, const json_t *kept)
{
	size_t i;
	json_t *warning;
	json_array_foreach(json_object_get(kept, "warnings"), i, warning)
	{
		const char *code = text_of(warning, "code", LIMIT_LABEL_BYTES);
		const char *message = text_of(warning, "message", TEXT_BYTES);
		if (code != NULL && message != NULL) {
			record_warn(record, code, message, text_of(warning, "hint", TEXT_BYTES));
		}
	}
}

static const char *sampler_name(const json_t *kept)
{
	static const char *const names[] = {"perf", "tick", "ptrace", "mach"};
	const char *name = text_of(kept, "sampler", LIMIT_LABEL_BYTES);
	for (size_t i = 0; name != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			return names[i];
		}
	}
	return NULL;
}

static void restore_effective(struct record *record, const json_t *kept)
{
	record->effective = (struct sampler_effective){
		.name = sampler_name(kept),
		.hz = count_of(kept, "hz"),
		.period_ns = count_of(kept, "period_ns"),
		.ring_bytes = count_of(kept, "rings_bytes"),
		.cpus = count_of(kept, "cpus"),
		.kernel_sampled = json_is_true(json_object_get(kept, "kernel_sampled")),
		.kernel_frames = json_is_true(json_object_get(json_object_get(kept, "options"), "kernel")),
	};
	record->duration_ms = count_of(json_object_get(kept, "options"), "duration_ms");
}

bool record_restore(struct record *record, const json_t *kept)
{
	const json_t *options = json_object_get(kept, "options");
	uint64_t pid = count_of(kept, "pid");
	if (!record_init(record, NULL, pid <= INT32_MAX ? (pid_t)pid : 0,
			text_of(kept, "label", LIMIT_LABEL_BYTES), json_is_object(options) ? options : NULL)) {
		return false;
	}
	const json_t *build_id = json_object_get(kept, "build_id");
	if (json_is_integer(build_id) || text_of(kept, "build_id", LIMIT_ID_BYTES) != NULL) {
		record->build_id = json_copy((json_t *)build_id);
	}
	record->state = "symbolizing";
	record->trace = trace_record_restore(kept);
	record->argv.texts = copy_of(kept, "argv", JSON_ARRAY);
	record->argv.bytes = copy_of(kept, "argv_b64", JSON_ARRAY);
	record->argv.is_repaired = record->argv.bytes != NULL;
	record->argv_truncated = json_is_true(json_object_get(kept, "argv_truncated"));
	record->is_pinned = json_is_true(json_object_get(kept, "pinned"));
	record->started_unix_us = count_of(kept, "started_unix_us");
	restore_exit(record, kept);
	restore_effective(record, kept);
	const char *unwinder = text_of(kept, "unwinder", LIMIT_LABEL_BYTES);
	record->unwinder = unwinder != NULL && strcmp(unwinder, "dwarf") == 0 ? "dwarf" : "fp";
	restore_warnings(record, kept);
	return copy_text(kept, "cwd", &record->cwd);
}

static const char *constant_reason(const char *reason)
{
	static const char *const reasons[] = {"duration", "stopped", "target_exited",
		"target_privileged", "limit", "disk_full", "client_exited", "daemon_shutdown", "recovered"};
	for (size_t i = 0; reason != NULL && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (strcmp(reasons[i], reason) == 0) {
			return reasons[i];
		}
	}
	return "recovered"; /* it ended before anybody could say why */
}

/* The warnings that do not come from an analysis, and are not about one. */
static void drop_findings(struct record *record)
{
	static const char *const own[] = {"events_not_opened", "kernel_time_not_sampled",
		"ring_memory_small", "children_cost_samples", "recovered", "folder_moved"};
	for (size_t i = json_array_size(record->warnings); i-- > 0;) {
		const char *code =
			json_string_value(json_object_get(json_array_get(record->warnings, i), "code"));
		size_t known = 0;
		while (known < sizeof(own) / sizeof(own[0]) && strcmp(own[known], code) != 0) {
			known++;
		}
		if (known == sizeof(own) / sizeof(own[0])) {
			json_array_remove(record->warnings, i);
		}
	}
}

bool record_restore_ended(struct record *record, const json_t *kept)
{
	if (!record_restore(record, kept)) {
		record_finish(record);
		return false;
	}
	const json_t *summary = json_object_get(kept, "summary");
	record->reason = constant_reason(text_of(kept, "reason", LIMIT_LABEL_BYTES));
	record->ended_unix_us = count_of(kept, "ended_unix_us");
	record->lost = count_of(kept, "lost");
	record->elapsed_ms = count_of(summary, "duration_ms");
	if (summary == NULL && record->ended_unix_us > record->started_unix_us) {
		record->elapsed_ms = (record->ended_unix_us - record->started_unix_us) / 1000;
	}
	drop_findings(record);
	return true;
}

json_t *record_kept_of_facts(const json_t *facts)
{
	json_t *kept = json_object();
	const char *const own[] = {"capture_id", "build_id", "label", "options", "warnings"};
	const char *const of_target[] = {"pid", "argv", "argv_b64", "argv_truncated", "cwd", "cwd_b64"};
	const json_t *target = json_object_get(facts, "target");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		json_t *value = json_object_get(facts, own[i]);
		if (value != NULL) {
			json_object_set(kept, own[i], value);
		}
	}
	for (size_t i = 0; i < sizeof(of_target) / sizeof(of_target[0]); i++) {
		json_t *value = json_object_get(target, of_target[i]);
		if (value != NULL) {
			json_object_set(kept, of_target[i], value);
		}
	}
	return kept;
}
