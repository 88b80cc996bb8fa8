#include "capture/trace_recovery.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/document.h"
#include "capture/trace_record.h"
#include "capture/trace_shaders.h"
#include "capture/trace_taking.h"
#include "capture/trace_verifying.h"
#include "capture/tracing.h"
#include "protocol/clock.h"
#include "protocol/gpu_wire.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/sha256.h"
#include "store/contents.h"
#include "store/shader_folder.h"
#include "target/writer.h"

#define LOOK_MS           50
#define QUIET_LOOKS       4
#define TEMPORARY_SHADERS ARTIFACT_DOCUMENT_PREFIX GPU_WIRE_SHADERS_FOLDER

static const char *text_of(const struct capture *capture, const char *name)
{
	const char *text = json_string_value(json_object_get(capture->record.trace, name));
	return text != NULL ? text : "";
}

static bool has_begun(const struct capture *capture)
{
	return json_is_integer(json_object_get(capture->record.trace, "first_frame"));
}

static pid_t program_of(const struct capture *capture)
{
	json_int_t pid = json_integer_value(json_object_get(capture->record.trace, "traced_pid"));
	return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

static bool lives(const struct capture *capture)
{
	pid_t pid = program_of(capture);
	return pid != 0 && writer_runs(pid, text_of(capture, "traced_exe"));
}

/* What is recorded ends with the connection to profd; until the file is there only the program's life says that it may come. */
static bool may_come(const struct capture *capture, uint64_t waited_ms)
{
	return has_begun(capture) && waited_ms < LIMIT_GPU_ANSWER_MS && lives(capture);
}

/* RenderDoc closes the file and opens it again, and the shaders come behind it: all is complete when nothing has moved for a while, or nobody is there to move it. */
static bool is_being_written(struct capture *capture, const struct stat *status, uint64_t waited_ms)
{
	struct trace_recovery *recovery = &capture->tracing->recovery;
	uint64_t bytes = contents_bytes_of_documents(capture->folder.fd);
	bool is_open = writer_has_open(program_of(capture), status->st_dev, status->st_ino);
	recovery->quiet_looks =
		is_open || bytes != recovery->seen_bytes ? 0 : recovery->quiet_looks + 1;
	recovery->seen_bytes = bytes;
	return (is_open || lives(capture)) && recovery->quiet_looks < QUIET_LOOKS &&
		   waited_ms < LIMIT_GPU_DOCUMENT_MS;
}

static bool is_awaited(struct capture *capture)
{
	char name[NAME_MAX + 1];
	struct stat status;
	const struct tracing *tracing = capture->tracing;
	uint64_t waited_ms = (clock_monotonic_ns() - tracing->recovery.began_ns) / 1000000;
	if (capture->discard || contents_has(capture->folder.fd, tracing->backend->document)) {
		return false;
	}
	return document_find(capture->folder.fd, name, &status)
			   ? is_being_written(capture, &status, waited_ms)
			   : may_come(capture, waited_ms);
}

static bool add_shader(int folder_fd, const char *file_name, void *context)
{
	char hash[SHA256_HEX_BYTES];
	struct stat status;
	snprintf(hash, sizeof(hash), "%s", file_name);
	if (strcmp(file_name + strlen(hash), GPU_WIRE_SHADERS_SUFFIX) == 0 &&
		fstatat(folder_fd, file_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		trace_shaders_add_found(context, hash, (uint64_t)status.st_size);
	}
	return true;
}

/* Worker. The one that the program has left under a temporary name, with the shaders beside it. */
static bool take_left(struct capture *capture)
{
	struct tracing *tracing = capture->tracing;
	char name[NAME_MAX + 1];
	struct stat status;
	if (!document_find(capture->folder.fd, name, &status)) {
		return false;
	}
	shader_folder_each(capture->folder.fd, TEMPORARY_SHADERS, add_shader, tracing->shaders);
	contents_remove(capture->folder.fd, CONTENTS_SHADERS, NULL); /* half made */
	trace_shaders_take(tracing->shaders, capture->folder.fd, &tracing->shader_counts);
	return document_take(capture->folder.fd, name, tracing->backend->magic,
		tracing->backend->document, &tracing->document, &tracing->error);
}

/* Worker. */
static bool take_named(struct capture *capture)
{
	struct tracing *tracing = capture->tracing;
	if (!tracing->is_vouched) {
		contents_remove(capture->folder.fd, CONTENTS_SHADERS, NULL); /* nobody knows whose */
	}
	return document_open(capture->folder.fd, tracing->backend->magic, tracing->backend->document,
		&tracing->document, &tracing->error);
}

/* Worker. */
static void take(uv_work_t *work)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	if (capture->discard) {
		return;
	}
	tracing->recovery.is_named = contents_has(capture->folder.fd, tracing->backend->document);
	tracing->is_document_good =
		tracing->recovery.is_named ? take_named(capture) : take_left(capture);
	contents_remove(capture->folder.fd, CONTENTS_TEMPORARIES, NULL);
	contents_remove(capture->folder.record_fd, CONTENTS_TEMPORARIES, NULL);
	if (!tracing->is_document_good) {
		contents_remove(capture->folder.fd, CONTENTS_SHADERS, NULL);
	}
}

static void fail_without(struct capture *capture)
{
	struct error err = capture->tracing->error;
	trace_record_clear_document(capture->record.trace);
	if (err.code == ERROR_NONE) {
		recovery_interrupt(capture, has_begun(capture)
										? "what it recorded of the GPU's work is lost"
										: "its first frame had not begun");
		return;
	}
	error_wrap(&err, "profd ended before the capture %s had ended", capture->record.id);
	ending_fail(capture, &err);
}

static void set_times(struct capture *capture)
{
	struct record *record = &capture->record;
	uint64_t now_us = clock_unix_us(), until_us = capture->tracing->document.written_us;
	until_us = until_us < now_us ? until_us : now_us;
	if (record->started_unix_us == 0 || record->started_unix_us > until_us) {
		record->started_unix_us = until_us;
	}
	record->ended_unix_us = until_us;
	record->elapsed_ms = (until_us - record->started_unix_us) / 1000;
	recovery_warn(capture, until_us, capture->tracing->is_vouched);
}

static uint64_t list_bytes(const struct capture *capture)
{
	struct stat status;
	bool is_there =
		fstatat(capture->folder.fd, ARTIFACT_SHADERS, &status, AT_SYMLINK_NOFOLLOW) == 0;
	return is_there && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

/* The folder may be elsewhere now, so that all paths are made again. */
static void set_document(struct capture *capture)
{
	const struct tracing *tracing = capture->tracing;
	json_t *trace = capture->record.trace;
	uint64_t bytes = list_bytes(capture);
	trace_record_set_document(
		trace, capture->folder.path, tracing->backend->document, tracing->document.bytes);
	if (!tracing->recovery.is_named) {
		trace_record_set_shaders(trace, capture->folder.path, &tracing->shader_counts);
		trace_taking_warn_of_shaders(capture);
	} else if (bytes > 0) {
		trace_record_add_list(trace, capture->folder.path, bytes);
	}
}

static void taken(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	(void)status;
	capture->record.reason = "recovered";
	if (capture->discard) {
		ending_cancel(capture);
		return;
	}
	if (!capture->tracing->is_document_good) {
		fail_without(capture);
		return;
	}
	set_document(capture);
	set_times(capture);
	trace_verifying_begin(capture);
}

static void look(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	if (is_awaited(capture)) {
		return;
	}
	uv_timer_stop(timer);
	capture->work.data = capture;
	uv_queue_work(capture->captures->options.loop, &capture->work, take, taken);
}

/* NULL: this profd has nothing to do with what recorded it. */
static const struct gpu_backend *backend_of(const struct capture *capture)
{
	const struct gpu_backend *backend = gpu_backend_choose();
	return backend != NULL && strcmp(backend->name, text_of(capture, "backend")) == 0 ? backend
																					  : NULL;
}

static bool fill_tracing(
	struct capture *capture, const struct gpu_backend *backend, struct error *err)
{
	if (!tracing_create(capture, backend)) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory to look for the document");
	}
	const json_t *verify = json_object_get(capture->record.options, "verify");
	struct tracing *tracing = capture->tracing;
	tracing->is_vouched = trace_record_is_told(capture->record.trace);
	tracing->is_verified = !tracing->is_vouched || !json_is_false(verify);
	return true;
}

bool trace_recovery_begin(struct capture *capture, struct error *err)
{
	const struct gpu_backend *backend = backend_of(capture);
	if (backend == NULL) {
		return error_set(err, ERROR_INTERRUPTED, "this profd does not know what recorded it");
	}
	if (capture->tracing == NULL && !fill_tracing(capture, backend, err)) {
		return false;
	}
	capture->tracing->recovery.began_ns = clock_monotonic_ns();
	uv_timer_start(&capture->tick, look, 0, LOOK_MS);
	return true;
}

void trace_recovery_hasten(struct capture *capture, const char *reason)
{
	bool is_waiting = capture->recovery != NULL && uv_is_active((uv_handle_t *)&capture->tick) != 0;
	if (is_waiting && !capture->discard && strcmp(reason, "daemon_shutdown") == 0) {
		uv_timer_stop(&capture->tick);
		capture->phase = CAPTURE_WAITING;
		capture->captures->waiting++;
	}
}
