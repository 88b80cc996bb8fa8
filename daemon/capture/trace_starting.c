#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "capture/trace_record.h"
#include "capture/tracing.h"
#include "protocol/limits.h"
#include "protocol/names.h"

static bool check_busy(
	const struct captures *captures, const struct gpu_program *program, struct error *err)
{
	for (const struct capture *other = captures->first; other != NULL; other = other->next) {
		if (other->tracing != NULL && other->tracing->program == program &&
			other->phase <= CAPTURE_SAMPLING) {
			error_set(err, ERROR_CAPTURE_BUSY,
				"the build's GPU work is recorded already, by the capture %s", other->record.id);
			return error_detail(err, "gpu_busy");
		}
	}
	return true;
}

static bool check_late(const struct capture_trace_options *options, struct error *err)
{
	struct trace_ending ending = {.range = &options->range};
	options->program->backend->status(options->program->armed, &ending.status);
	return !trace_failure_is_late(&ending, err);
}

static bool check_space(const struct capture *capture, struct error *err)
{
	struct statvfs status;
	if (fstatvfs(capture->folder.fd, &status) != 0) {
		return error_errno(err, "examine %s", capture->folder.path);
	}
	uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
	if (free_bytes < LIMIT_GPU_FREE_BYTES) {
		return error_set(err, ERROR_DISK_FULL,
			"%s has %" PRIu64 " bytes free, less than the %d that a document wants at least",
			capture->folder.path, free_bytes, LIMIT_GPU_FREE_BYTES);
	}
	return true;
}

static bool fill_tracing(
	struct capture *capture, const struct capture_trace_options *options, struct error *err)
{
	char *path = NULL;
	if (!tracing_create(capture, options->program->backend) ||
		asprintf(&path, "%s/" ARTIFACT_DOCUMENT_PREFIX, capture->folder.path) < 0) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a GPU trace");
	}
	struct tracing *tracing = capture->tracing;
	tracing->program = gpu_program_hold(options->program);
	tracing->range = options->range;
	tracing->range.path_template = path;
	tracing->duration_ms = options->duration_ms;
	tracing->timeout_ms = options->timeout_ms;
	tracing->is_vouched = true;
	tracing->is_verified = options->verify;
	tracing->ending.range = &tracing->range;
	tracing->told.frame = -1;
	tracing->told.state = capture->record.state;
	tracing_take_status(capture);
	tracing->ending.had_frame = tracing->ending.status.has_frame;
	tracing->ending.start_frame = tracing->ending.status.frame;
	return true;
}

static bool start(struct capture *capture, struct error *err)
{
	struct tracing *tracing = capture->tracing;
	const struct gpu_backend *backend = tracing->backend;
	if (!backend->start(tracing->program->armed, &tracing->range, err)) {
		return false;
	}
	backend->listen(tracing->program->armed, &tracing_listener, capture);
	tracing->is_listening = true;
	return true;
}

struct capture *captures_trace(
	struct captures *captures, const struct capture_trace_options *options, struct error *err)
{
	struct process *process = options->process;
	if (!starting_check_process(process, err) || !check_busy(captures, options->program, err) ||
		!check_late(options, err) || !starting_check_room(captures, err)) {
		return NULL;
	}
	struct capture *capture = starting_create(
		captures, process, process_pid(process), options->label, options->asked, err);
	if (capture == NULL) {
		return NULL;
	}
	capture->progress_ms = options->progress_ms;
	capture->record.trace = trace_record_create(
		options->program->backend, &options->range, options->duration_ms, options->timeout_ms);
	if (!starting_make_folder(capture, options->output_dir, err) || !check_space(capture, err) ||
		!fill_tracing(capture, options, err) || !starting_put_record(capture, err) ||
		!start(capture, err)) {
		starting_undo(capture);
		return NULL;
	}
	tracing_watch(capture, process);
	captures_add(captures, capture);
	log_write(captures->options.log, LOG_INFO, "capture",
		"%s of the GPU work of process %d begins, by %s", capture->record.id,
		(int)process_pid(process), options->program->backend->name);
	return capture;
}
