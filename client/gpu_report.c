#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "client/gpu.h"
#include "client/profctl.h"
#include "client/reply.h"
#include "client/report.h"

void gpu_show_progress(void *context, const json_t *params)
{
	const struct gpu *gpu = context;
	const json_t *frame = json_object_get(params, "frame");
	if (!gpu->recording.shows_progress) {
		return;
	}
	const char *state = reply_string(params, "state");
	/* The protocol has one word for all captures that are under way. */
	fprintf(stderr, "\r\033[K%s: %.1f s", strcmp(state, "sampling") == 0 ? "recording" : state,
		(double)reply_integer(params, "elapsed_ms") / 1000.0);
	if (json_is_integer(frame)) {
		fprintf(stderr, ", frame %" JSON_INTEGER_FORMAT, json_integer_value(frame));
	}
	if (reply_integer(params, "bytes") > 0) {
		fprintf(stderr, ", %.1f MB", (double)reply_integer(params, "bytes") / 1e6);
	}
	fflush(stderr);
}

static void report_finished(const json_t *params)
{
	fputs("profctl: ", stderr);
	report_frames(stderr, params);
	report_reason(stderr, "trace", params);
	report_warnings(stderr, params);
	report_paths(stderr, params);
}

static void report_lost(const struct recording *recording)
{
	if (recording->lost.code != ERROR_CANCELLED) {
		fputs("profctl: the GPU trace was not completed; the program was not disturbed\n", stderr);
	}
	profctl_complain(&recording->lost);
}

void gpu_report(const struct gpu *gpu)
{
	const struct recording *recording = &gpu->recording;
	recording_clear_progress(recording);
	if (recording->final == NULL) {
		report_lost(recording);
	} else if (gpu->json) {
		profctl_print_json(stderr, recording->final);
	} else if (strcmp(profclient_event_name(recording->final), recording->finished) != 0) {
		recording_tell_failure(recording);
	} else if (!gpu->quiet) {
		report_finished(profclient_event_params(recording->final));
	}
}

void gpu_report_signal(const struct gpu *gpu)
{
	const struct recording *recording = &gpu->recording;
	const json_t *params =
		recording->final != NULL ? profclient_event_params(recording->final) : NULL;
	struct error err = {0};
	int status = recording->job.wait_status;
	if (gpu->json || !error_from_json(&err, json_object_get(params, "error")) ||
		strcmp(err.detail, "exited_mid_capture") != 0 || !WIFSIGNALED(status)) {
		return;
	}
	const char *name = sigabbrev_np(WTERMSIG(status));
	fprintf(stderr, "profctl: the program was ended by %s%s (signal %d)\n",
		name != NULL ? "SIG" : "a signal", name != NULL ? name : "", WTERMSIG(status));
}
