#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "capture/recording.h"
#include "capture/tracing.h"
#include "protocol/clock.h"

/* The build of a GPU trace: its beginning, and its end, which is the trace's. */

#define EXIT_TICK_MS 10 /* what an ended program has said is read meanwhile */

static void start_waiting(struct capture *capture)
{
	/* Time begins with the program; a recording that has begun already waits for no first frame. */
	if (!capture->tracing->ending.has_begun && !capture->tracing->is_asked_to_stop) {
		capture->armed_ns = clock_monotonic_ns();
		uv_update_time(capture->captures->options.loop);
		uv_timer_start(&capture->duration, tracing_time_over, capture->tracing->timeout_ms + 1, 0);
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
	tracing_conclude(capture, "target_exited");
}

/* Its process lives on behind the build, which it does not belong to any more: it ends as with a build that ends. */
static void stop_background(struct capture *capture)
{
	const struct gpu_status *status = &capture->tracing->ending.status;
	char message[sizeof(status->exe) + 160];
	if (!capture->tracing->is_asked_to_stop) {
		snprintf(message, sizeof(message),
			"the build ended with its first process; process %d (%s), which it left in the "
			"background, was recorded until then",
			(int)status->pid, status->exe);
		record_warn(&capture->record, "background", message,
			"keep the program in the foreground: without &, --daemon or the like");
	}
	tracing_stop(capture, "target_exited");
}

/* What it has said last is read first; its children may be who works with the GPU. */
static void look_after_exit(uv_timer_t *timer)
{
	struct capture *capture = timer->data;
	struct tracing *tracing = capture->tracing;
	tracing_take_status(capture);
	bool is_over = clock_monotonic_ns() - tracing->exited_ns > TRACING_EXIT_MS * UINT64_C(1000000);
	if (tracing->is_gone || tracing->ending.status.connected == 0 ||
		(is_over && !tracing->ending.has_begun)) {
		tracing_conclude(capture, "target_exited");
	} else if (is_over) {
		stop_background(capture);
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
	if (!tracing->is_asked_to_stop) {
		uv_timer_stop(&capture->duration); /* else it waits for an answer, which may come still */
	}
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
	uv_timer_start(&capture->tick, tracing_tell, capture->progress_ms, capture->progress_ms);
	if (process_state(process) == PROCESS_RUNNING) {
		start_waiting(capture);
	}
}
