#include "client/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "client/report.h"

void record_show_progress(void *context, const json_t *params)
{
	const struct record *record = context;
	if (!record->recording.shows_progress) {
		return;
	}
	fprintf(stderr,
		"\r\033[K%s: %.1f s, %" JSON_INTEGER_FORMAT " samples, %" JSON_INTEGER_FORMAT " threads",
		reply_string(params, "state"), (double)reply_integer(params, "elapsed_ms") / 1000.0,
		reply_integer(params, "samples"), reply_integer(params, "threads"));
	fflush(stderr);
}

static void report_finished(const json_t *params)
{
	double samples = (double)reply_integer(params, "samples");
	const json_t *summary = json_object_get(params, "summary");
	fprintf(stderr, "profctl: %.0f samples in %.2f s, %" JSON_INTEGER_FORMAT " lost\n", samples,
		(double)reply_integer(summary, "duration_ms") / 1000.0, reply_integer(params, "lost"));
	if (strcmp(reply_string(params, "reason"), "target_exited") != 0) {
		report_reason(stderr, "sampling", params);
	}
	report_top(stderr, params);
	report_warnings(stderr, params);
	report_paths(stderr, params);
}

void record_report(const struct record *record)
{
	const struct recording *recording = &record->recording;
	if (recording->final == NULL) {
		if (recording->lost.code != ERROR_CANCELLED) {
			fprintf(stderr, "profctl: the profile was not completed, the program was not "
							"disturbed; what was gathered is finished when "
							"profd starts again (profctl captures)\n");
		}
		profctl_complain(&recording->lost);
	} else if (record->json) {
		profctl_print_json(stderr, recording->final);
	} else if (strcmp(profclient_event_name(recording->final), recording->finished) != 0) {
		recording_tell_failure(recording);
	} else if (!record->quiet) {
		report_finished(profclient_event_params(recording->final));
	}
}
