#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/recording.h"
#include "capture/trace_record.h"
#include "capture/trace_recovery.h"
#include "capture/trace_shaders.h"
#include "capture/trace_taking.h"
#include "capture/trace_verifying.h"
#include "capture/tracing.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "store/contents.h"

/*
 * All of a GPU trace:
 *
 *   armed ──capturing──► sampling ──document──► a worker looks at it and renames it ──► its reader reads it ──► finished
 *     └────────────────────┴── fault, gone, exit, no answer ──► (a worker asks the machine) ──► failed
 *
 * A stop, whoever wants it, is a word to the program; what comes of it is told by the program, or by its end.
 */
bool tracing_create(struct capture *capture, const struct gpu_backend *backend)
{
	struct tracing *tracing = calloc(1, sizeof(*tracing));
	struct trace_shaders *shaders = trace_shaders_create();
	if (tracing == NULL || shaders == NULL) {
		trace_shaders_destroy(shaders);
		free(tracing);
		return false;
	}
	tracing->backend = backend;
	tracing->document = DOCUMENT_NONE;
	tracing->shaders = shaders;
	capture->tracing = tracing;
	return true;
}

void tracing_destroy(struct tracing *tracing)
{
	if (tracing == NULL) {
		return;
	}
	if (tracing->is_listening) {
		tracing->backend->listen(tracing->program->armed, NULL, NULL);
	}
	gpu_program_release(tracing->program);
	free((char *)tracing->range.path_template);
	free(tracing->document_path);
	document_close(&tracing->document);
	trace_shaders_destroy(tracing->shaders);
	free(tracing);
}

static void stop_listening(struct tracing *tracing)
{
	if (tracing->is_listening) {
		tracing->is_listening = false;
		tracing->backend->listen(tracing->program->armed, NULL, NULL);
	}
}

void tracing_take_status(struct capture *capture)
{
	struct tracing *tracing = capture->tracing;
	struct gpu_status now;
	tracing->backend->status(tracing->program->armed, &now);
	if (tracing->is_gone) { /* who is there now is another, or has closed the connection */
		tracing->ending.status.has_closed = now.has_closed;
		return;
	}
	tracing->ending.status = now;
	trace_record_set_status(
		capture->record.trace, &tracing->ending.status, tracing->ending.has_begun);
}

static uint64_t elapsed_ms(const struct capture *capture, uint64_t now_ns)
{
	return capture->started_ns != 0 && now_ns > capture->started_ns
			   ? (now_ns - capture->started_ns) / 1000000
			   : 0;
}

/* Progress, when there is any. */
void tracing_tell(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	struct tracing *tracing = capture->tracing;
	tracing_take_status(capture);
	const struct gpu_status *status = &tracing->ending.status;
	int64_t frame = status->has_frame ? (int64_t)status->frame : -1;
	uint64_t bytes = contents_bytes_of_documents(capture->folder.fd);
	if (frame == tracing->told.frame && bytes == tracing->told.bytes &&
		capture->record.state == tracing->told.state) {
		return;
	}
	tracing->told.frame = frame;
	tracing->told.bytes = bytes;
	tracing->told.state = capture->record.state;
	capture_publish(capture, EVENT_GPU_TRACE_PROGRESS, EVENTS_LATEST,
		record_trace_progress(
			&capture->record, elapsed_ms(capture, clock_monotonic_ns()), frame, bytes));
}

/* Nothing more is waited for. False: it is ending already. */
static bool begin_end(struct capture *capture, const char *reason)
{
	if (capture->phase > CAPTURE_SAMPLING) {
		return false;
	}
	tracing_take_status(capture);
	stop_listening(capture->tracing);
	capture->phase = CAPTURE_STOPPING;
	capture->ended_ns = capture->tracing->ending.ended_ns = clock_monotonic_ns();
	capture->record.ended_unix_us = clock_unix_us();
	capture->record.elapsed_ms = elapsed_ms(capture, capture->ended_ns);
	if (capture->record.reason == NULL) {
		capture->record.reason = reason;
	}
	uv_timer_stop(&capture->tick);
	uv_timer_stop(&capture->duration);
	uv_timer_stop(&capture->defer);
	process_unwatch(&capture->watch);
	return true;
}

/* Worker: what of the cause has to be looked for. */
static void find_cause(uv_work_t *work)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	struct trace_ending *ending = &tracing->ending;
	const struct gpu_backend *backend = tracing->backend;
	struct gpu_armed *armed = tracing->program->armed;
	struct gpu_finding finding;
	if (trace_failure_needs_survivor(ending) && ending->status.connected > 0) {
		ending->survivor = ending->status.pid;
		snprintf(
			ending->survivor_name, sizeof(ending->survivor_name), "%.255s", ending->status.exe);
	} else if (trace_failure_needs_survivor(ending)) {
		ending->survivor =
			backend->survivor(armed, ending->survivor_name, sizeof(ending->survivor_name));
	}
	/* Whether any program could have been recorded here. */
	tracing->is_machine_good =
		ending->survivor != 0 || !trace_failure_needs_probe(ending) ||
		backend->probe(backend->surroundings(armed), &finding, &tracing->error);
}

static void cause_found(uv_work_t *work, int status)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	(void)status;
	if (tracing->is_machine_good) {
		tracing->error = (struct error){0};
		trace_failure_explain(&tracing->ending, &tracing->error);
	}
	trace_taking_fail(capture, &tracing->error);
}

/* There is no document, and none will come. */
void tracing_conclude(struct capture *capture, const char *reason)
{
	struct tracing *tracing = capture->tracing;
	struct error err = {0};
	if (!begin_end(capture, reason)) {
		return;
	}
	/* profd ends with its programs. */
	bool is_profds_end = strcmp(capture->record.reason, "daemon_shutdown") == 0;
	bool is_stopped = tracing->is_asked_to_stop && (!tracing->has_exited || is_profds_end) &&
					  strcmp(capture->record.reason, "timeout") != 0;
	tracing->ending.stopped_by = is_stopped ? capture->record.reason : NULL;
	tracing->ending.waited_ms = (capture->ended_ns - capture->armed_ns) / 1000000;
	if (capture->failure.code != ERROR_NONE || capture->discard) {
		trace_taking_fail(capture, &capture->failure);
	} else if (trace_failure_needs_probe(&tracing->ending) ||
			   trace_failure_needs_survivor(&tracing->ending)) {
		capture->work.data = capture;
		uv_queue_work(capture->captures->options.loop, &capture->work, find_cause, cause_found);
	} else {
		trace_failure_explain(&tracing->ending, &err);
		trace_taking_fail(capture, &err);
	}
}

/* Stopping. */

static void conclude_later(uv_timer_t *timer)
{
	tracing_conclude(timer->data, "stopped");
}

static void no_answer(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	struct error err = {0};
	uint64_t limit_ms =
		capture->tracing->ending.has_begun ? LIMIT_GPU_DOCUMENT_MS : LIMIT_GPU_ANSWER_MS;
	if (!begin_end(capture, "stopped")) {
		return;
	}
	if (!trace_failure_is_waiting(&capture->tracing->ending, ERROR_TIMEOUT, &err)) {
		error_set(&err, ERROR_TIMEOUT,
			"process %d was asked to end the recording and did not answer within %" PRIu64 " ms",
			(int)capture->tracing->ending.status.pid, limit_ms);
		error_detail(&err, "no_answer");
		error_hint(&err, "the program hangs, or a debugger holds it: stop it");
	}
	trace_taking_fail(capture, &err);
}

void tracing_stop(struct capture *capture, const char *reason)
{
	struct tracing *tracing = capture->tracing;
	trace_verifying_hasten(capture, reason);
	trace_recovery_hasten(capture, reason);
	if (capture->phase > CAPTURE_SAMPLING || tracing->is_asked_to_stop) {
		return;
	}
	tracing->is_asked_to_stop = true;
	capture->record.reason = reason;
	if (!tracing->backend->stop(tracing->program->armed)) {
		uv_timer_start(&capture->defer, conclude_later, 0, 0);
		return;
	}
	uv_timer_start(&capture->duration, no_answer,
		tracing->ending.has_begun ? LIMIT_GPU_DOCUMENT_MS : LIMIT_GPU_ANSWER_MS, 0);
}

void tracing_time_over(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	tracing_stop(capture, capture->tracing->ending.has_begun ? "duration" : "timeout");
}

/* The document. */

static void on_shader(void *context, const struct gpu_shader *shader)
{
	struct capture *capture = context;
	trace_shaders_add(capture->tracing->shaders, shader);
}

static void on_shaders_left_out(void *context, uint64_t count)
{
	struct capture *capture = context;
	trace_shaders_leave_out(capture->tracing->shaders, count);
}

static void on_document(void *context, const struct gpu_document *document)
{
	struct capture *capture = context;
	struct tracing *tracing = capture->tracing;
	struct error err = {0};
	tracing->document_path = strdup(document->path);
	tracing->first_frame = document->first;
	tracing->last_frame = document->last;
	tracing->is_last_open = document->is_open;
	tracing->is_cut_by_window = document->by_window;
	/* What nobody stopped, and has not all frames, ended with the program or its device. */
	uint64_t asked = trace_taking_frames_asked(&tracing->range);
	bool is_whole = asked > 0 && document->last - document->first >= asked - 1;
	const char *reason = document->by_program ? "stopped" : "target_exited";
	if (!begin_end(capture, is_whole ? "frames" : reason)) {
		return;
	}
	if (tracing->document_path == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "no memory for the document's path");
		trace_taking_fail(capture, &err);
		return;
	}
	trace_taking_begin(capture);
}

/* What else the program tells. */

static void on_frame(void *context, uint64_t frame)
{
	(void)context; /* the next progress tells it */
	(void)frame;
}

/* The program's clock is ours; but what it says is checked. */
static void date(struct capture *capture, uint64_t wall_ns, uint64_t mono_ns)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_likely = mono_ns >= capture->armed_ns && mono_ns <= now_ns;
	capture->started_ns = is_likely ? mono_ns : now_ns;
	capture->record.started_unix_us = is_likely && wall_ns > 0 ? wall_ns / 1000 : clock_unix_us();
}

static void on_capturing(void *context, uint64_t frame, uint64_t wall_ns, uint64_t mono_ns)
{
	struct capture *capture = context;
	struct tracing *tracing = capture->tracing;
	tracing->ending.has_begun = true;
	tracing->ending.first_frame = frame;
	date(capture, wall_ns, mono_ns);
	capture->phase = CAPTURE_SAMPLING;
	capture->record.state = "sampling";
	tracing_take_status(capture);
	trace_record_set_begin(capture->record.trace, frame, capture->started_ns / 1000);
	capture_keep(capture);
	capture_publish(
		capture, EVENT_GPU_TRACE_STARTED, EVENTS_LOSSLESS, record_started(&capture->record));
	if (tracing->is_asked_to_stop) {
		uv_timer_start(&capture->duration, no_answer, LIMIT_GPU_DOCUMENT_MS, 0);
	} else if (tracing->duration_ms > 0) {
		uint64_t passed_ms = elapsed_ms(capture, clock_monotonic_ns());
		uv_timer_start(&capture->duration, tracing_time_over,
			tracing->duration_ms > passed_ms ? tracing->duration_ms - passed_ms + 1 : 0, 0);
	} else {
		uv_timer_stop(&capture->duration);
	}
}

static void on_fault(void *context, const struct error *fault)
{
	struct capture *capture = context;
	struct tracing *tracing = capture->tracing;
	tracing_take_status(capture);
	if (tracing->is_asked_to_stop && !tracing->ending.has_begun) {
		tracing_conclude(capture, "stopped");
		return;
	}
	if (begin_end(capture, "failed")) {
		trace_taking_fail(capture, fault);
	}
}

static void exit_over(uv_timer_t *timer)
{
	tracing_conclude(timer->data, "target_exited");
}

/* The process that was recorded is gone. How it ended, the build's end tells, when it was the build. */
static void on_gone(void *context)
{
	struct capture *capture = context;
	tracing_take_status(capture);
	capture->tracing->is_gone = true;
	if (capture->tracing->has_exited) {
		tracing_conclude(capture, "target_exited");
	} else {
		uv_timer_start(&capture->duration, exit_over, TRACING_EXIT_MS, 0);
	}
}

const struct gpu_listener tracing_listener = {
	.frame = on_frame,
	.capturing = on_capturing,
	.shader = on_shader,
	.shaders_left_out = on_shaders_left_out,
	.document = on_document,
	.fault = on_fault,
	.gone = on_gone,
};
