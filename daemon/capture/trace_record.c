#include "capture/trace_record.h"

#include <stdio.h>
#include <string.h>

#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/text.h"

#define TEXT_BYTES 4096
#define PATH_BYTES (4096 + 256)

static const char *const members[] = {"backend", "backend_version", "trace_kind", "frame_by",
	"start_frame", "end_frame", "frames", "duration_ms", "timeout_ms", "first_frame", "last_frame",
	"traced_pid", "traced_exe", "device", "started_mono_us", "trace_path", "artifacts", "shaders",
	"verified"};

static void set_text(json_t *object, const char *name, const char *text)
{
	if (text[0] == '\0' || !text_set(object, name, text, strlen(text))) {
		json_object_set_new(object, name, json_null());
	}
}

static void set_count(json_t *object, const char *name, uint64_t value)
{
	uint64_t limit = (uint64_t)LIMIT_INTEGER;
	json_object_set_new(object, name, json_integer((json_int_t)(value < limit ? value : limit)));
}

/* "submit", or "label:PREFIX". */
static void set_frame_by(json_t *trace, const struct gpu_range *range)
{
	char text[GPU_LABEL_BYTES + 16];
	snprintf(text, sizeof(text), "%s%s%s", gpu_boundary_name(range->by),
		range->by == GPU_BY_LABEL ? ":" : "", range->by == GPU_BY_LABEL ? range->label : "");
	set_text(trace, "frame_by", text);
}

json_t *trace_record_create(const struct gpu_backend *backend, const struct gpu_range *range,
	uint64_t duration_ms, uint64_t timeout_ms)
{
	json_t *trace = json_object();
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_object_set_new(trace, members[i], json_null());
	}
	set_text(trace, "backend", backend->name);
	set_text(trace, "trace_kind", "document");
	set_frame_by(trace, range);
	if (range->has_frames) {
		set_count(trace, "start_frame", range->first);
		set_count(trace, "end_frame", range->last);
	} else if (range->next > 0) {
		set_count(trace, "frames", range->next);
	}
	if (duration_ms > 0) {
		set_count(trace, "duration_ms", duration_ms);
	}
	set_count(trace, "timeout_ms", timeout_ms);
	json_object_set_new(trace, "artifacts", json_array());
	return trace;
}

/* A member of the type that it may have; else null. */
static json_t *restored(const char *name, const json_t *value)
{
	bool is_text = json_is_string(value) && json_string_length(value) <= TEXT_BYTES;
	bool is_part =
		((strcmp(name, "device") == 0 || strcmp(name, "shaders") == 0) && json_is_object(value)) ||
		(strcmp(name, "artifacts") == 0 && json_is_array(value));
	bool is_truth = strcmp(name, "verified") == 0 && json_is_boolean(value);
	return is_text || is_part || is_truth || json_is_integer(value) ? json_deep_copy(value)
																	: json_null();
}

json_t *trace_record_restore(const json_t *kept)
{
	const char *kind = json_string_value(json_object_get(kept, "kind"));
	if (kind == NULL || strcmp(kind, "gpu") != 0) {
		return NULL;
	}
	json_t *trace = json_object();
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		json_object_set_new(
			trace, members[i], restored(members[i], json_object_get(kept, members[i])));
	}
	return trace;
}

static json_t *device_json(const struct gpu_device *device)
{
	json_t *object = json_object();
	set_text(object, "name", device->name);
	set_text(object, "type", device->type);
	set_text(object, "driver", device->driver);
	set_text(object, "uuid", device->uuid);
	set_count(object, "index", device->index);
	return object;
}

void trace_record_set_status(json_t *trace, const struct gpu_status *status, bool has_begun)
{
	set_text(trace, "backend_version", status->version);
	set_text(trace, "traced_exe", status->exe);
	if (status->pid > 0) {
		set_count(trace, "traced_pid", (uint64_t)status->pid);
	}
	if (status->device.name[0] != '\0') {
		json_object_set_new(trace, "device", device_json(&status->device));
	}
	const char *asked = json_string_value(json_object_get(trace, "frame_by"));
	if (asked != NULL && strcmp(asked, "auto") == 0 && has_begun && status->frame_by[0] != '\0') {
		set_text(trace, "frame_by", status->frame_by);
	}
}

void trace_record_set_begin(json_t *trace, uint64_t first_frame, uint64_t mono_us)
{
	set_count(trace, "first_frame", first_frame);
	if (mono_us > 0) {
		set_count(trace, "started_mono_us", mono_us);
	}
}

/* *path: where it is, of PATH_BYTES. */
static void add_artifact(
	json_t *trace, const char *folder, const char *name, uint64_t bytes, char *path)
{
	json_t *artifact = json_object();
	snprintf(path, PATH_BYTES, "%s/%s", folder, name);
	set_text(artifact, "name", name);
	set_text(artifact, "path", path);
	set_count(artifact, "bytes", bytes);
	json_array_append_new(json_object_get(trace, "artifacts"), artifact);
}

void trace_record_clear_document(json_t *trace)
{
	json_object_set_new(trace, "artifacts", json_array());
	json_object_set_new(trace, "trace_path", json_null());
}

void trace_record_set_document(json_t *trace, const char *folder, const char *name, uint64_t bytes)
{
	char path[PATH_BYTES];
	trace_record_clear_document(trace);
	add_artifact(trace, folder, name, bytes, path);
	set_text(trace, "trace_path", path);
}

void trace_record_set_frames(json_t *trace, uint64_t first_frame, uint64_t last_frame)
{
	set_count(trace, "first_frame", first_frame);
	set_count(trace, "last_frame", last_frame);
}

bool trace_record_is_told(const json_t *trace)
{
	return json_is_integer(json_object_get(trace, "last_frame")) &&
		   json_is_string(json_object_get(trace, "trace_path"));
}

void trace_record_add_list(json_t *trace, const char *folder, uint64_t bytes)
{
	char path[PATH_BYTES];
	add_artifact(trace, folder, ARTIFACT_SHADERS, bytes, path);
}

void trace_record_set_shaders(
	json_t *trace, const char *folder, const struct trace_shaders_counts *counts)
{
	json_t *shaders = json_object();
	set_count(shaders, "total", counts->total);
	set_count(shaders, "with_source", counts->with_source);
	set_count(shaders, "with_lines", counts->with_lines);
	set_count(shaders, "left_out", counts->left_out);
	json_object_set_new(trace, "shaders", shaders);
	if (counts->list_bytes > 0) {
		trace_record_add_list(trace, folder, counts->list_bytes);
	}
}

void trace_record_set_verified(json_t *trace, bool is_verified)
{
	json_object_set_new(trace, "verified", json_boolean(is_verified));
}
