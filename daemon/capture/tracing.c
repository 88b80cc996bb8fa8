#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "capture/recording.h"
#include "capture/trace_record.h"
#include "capture/trace_recovery.h"
#include "capture/trace_shaders.h"
#include "capture/trace_taking.h"
#include "capture/trace_verifying.h"
#include "capture/tracing.h"
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
#define EXIT_TICK_MS 10   /* what an ended program has said is read meanwhile */
#define EXIT_MS      1000 /* and so long its children may still say something */

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
	tracing->backend->status(tracing->program->armed, &tracing->ending.status);
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
static void tell(uv_timer_t *timer)
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

/* Worker: whether any program could have been recorded here. */
static void ask_machine(uv_work_t *work)
{
	struct capture *capture = work->data;
	struct tracing *tracing = capture->tracing;
	const struct gpu_backend *backend = tracing->backend;
	struct gpu_finding finding;
	tracing->is_machine_good =
		backend->probe(backend->surroundings(tracing->program->armed), &finding, &tracing->error);
}

static void machine_asked(uv_work_t *work, int status)
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
static void conclude(struct capture *capture, const char *reason)
{
	struct tracing *tracing = capture->tracing;
	struct error err = {0};
	if (!begin_end(capture, reason)) {
		return;
	}
	tracing->ending.waited_ms = (capture->ended_ns - capture->armed_ns) / 1000000;
	if (capture->failure.code != ERROR_NONE || capture->discard) {
		trace_taking_fail(capture, &capture->failure);
	} else if (trace_failure_needs_probe(&tracing->ending)) {
		capture->work.data = capture;
		uv_queue_work(capture->captures->options.loop, &capture->work, ask_machine, machine_asked);
	} else {
		trace_failure_explain(&tracing->ending, &err);
		trace_taking_fail(capture, &err);
	}
}

/* Stopping. */

static void conclude_later(uv_timer_t *timer)
{
	conclude(timer->data, "stopped");
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

static void time_over(uv_timer_t *timer)
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
		uv_timer_start(&capture->duration, time_over,
			tracing->duration_ms > passed_ms ? tracing->duration_ms - passed_ms + 1 : 0, 0);
	} else {
		uv_timer_stop(&capture->duration);
	}
}

static void on_fault(void *context, const struct error *fault)
{
	struct capture *capture = context;
	struct tracing *tracing = capture->tracing;
	struct error err = *fault;
	tracing_take_status(capture);
	if (tracing->is_asked_to_stop && !tracing->ending.has_begun) {
		conclude(capture, "stopped");
		return;
	}
	if (strcmp(fault->detail, "start_failed") == 0) {
		tracing->ending.is_refused = true;
		trace_failure_is_late(&tracing->ending, &err);
	}
	if (begin_end(capture, "failed")) {
		trace_taking_fail(capture, &err);
	}
}

static void exit_over(uv_timer_t *timer)
{
	conclude(timer->data, "target_exited");
}

/* The process that was recorded is gone. How it ended, the build's end tells, when it was the build. */
static void on_gone(void *context)
{
	struct capture *capture = context;
	if (capture->tracing->has_exited) {
		conclude(capture, "target_exited");
	} else {
		uv_timer_start(&capture->duration, exit_over, EXIT_MS, 0);
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

/* The build. */

static void start_waiting(struct capture *capture)
{
	/* Time begins with the program; a recording that has begun already waits for no first frame. */
	if (!capture->tracing->ending.has_begun && !capture->tracing->is_asked_to_stop) {
		capture->armed_ns = clock_monotonic_ns();
		uv_update_time(capture->captures->options.loop);
		uv_timer_start(&capture->duration, time_over, capture->tracing->timeout_ms + 1, 0);
	}
}

static void process_runs(void *context, struct process *process)
{
	(void)process;
	start_waiting(context);
}

static void process_failed(void *context, struct process *process, const struct error *err)
{
	struct capture *capture = context;
	(void)process;
	capture->failure = *err;
	conclude(capture, "target_exited");
}

/* What it has said last is read first; its children may be who works with the GPU. */
static void look_after_exit(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	struct tracing *tracing = capture->tracing;
	tracing_take_status(capture);
	if (tracing->ending.status.connected == 0 ||
		clock_monotonic_ns() - tracing->exited_ns > EXIT_MS * UINT64_C(1000000)) {
		conclude(capture, "target_exited");
	}
}

static void describe_exit(const struct record *record, char *text, size_t size)
{
	const char *name = record->was_signalled ? sigabbrev_np(record->signal) : NULL;
	if (!record->has_exit) {
		snprintf(text, size, "ended");
	} else if (!record->was_signalled) {
		snprintf(text, size, "ended with status %d", record->exit_code);
	} else {
		snprintf(text, size, "was ended by %s%s", name != NULL ? "SIG" : "a signal",
			name != NULL ? name : "");
	}
}

static void process_exited(void *context, struct process *process)
{
	struct capture *capture = context;
	struct tracing *tracing = capture->tracing;
	record_set_exit(&capture->record, process);
	if (process_launch_error(process) != NULL) {
		capture->failure = *process_launch_error(process);
	}
	tracing->has_exited = tracing->ending.has_exited = true;
	tracing->exited_ns = clock_monotonic_ns();
	describe_exit(
		&capture->record, tracing->ending.how_it_ended, sizeof(tracing->ending.how_it_ended));
	uv_timer_stop(&capture->duration);
	uv_timer_start(&capture->tick, look_after_exit, 0, EXIT_TICK_MS);
}

static const struct process_watch_ops watch_ops = {
	.running = process_runs,
	.failed = process_failed,
	.exited = process_exited,
};

void tracing_watch(struct capture *capture, struct process *process)
{
	capture_init_handles(capture);
	capture->watch.ops = &watch_ops;
	capture->watch.context = capture;
	process_watch(process, &capture->watch);
	uv_timer_start(&capture->tick, tell, capture->progress_ms, capture->progress_ms);
	if (process_state(process) == PROCESS_RUNNING) {
		start_waiting(capture);
	}
}
