#include "client/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/names.h"

void record_show_progress(const struct record *record, const json_t *params)
{
	if (!record->shows_progress) {
		return;
	}
	fprintf(stderr,
		"\r\033[K%s: %.1f s, %" JSON_INTEGER_FORMAT " samples, %" JSON_INTEGER_FORMAT " threads",
		reply_string(params, "state"), (double)reply_integer(params, "elapsed_ms") / 1000.0,
		reply_integer(params, "samples"), reply_integer(params, "threads"));
	fflush(stderr);
}

void record_clear_progress(const struct record *record)
{
	if (record->shows_progress) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}

static void report_top(const json_t *summary, double samples)
{
	size_t index;
	const json_t *entry;
	fprintf(stderr, "   self   total  function\n");
	json_array_foreach(json_object_get(summary, "top"), index, entry)
	{
		fprintf(stderr, "%6.1f%% %6.1f%%  ", 100.0 * (double)reply_integer(entry, "self") / samples,
			100.0 * (double)reply_integer(entry, "total") / samples);
		reply_print(stderr, reply_string(entry, "function"), 0);
		fputc('\n', stderr);
	}
}

static void report_warnings(const json_t *params)
{
	size_t index;
	const json_t *warning;
	json_array_foreach(json_object_get(params, "warnings"), index, warning)
	{
		fprintf(stderr, "warning: ");
		reply_print(stderr, reply_string(warning, "message"), 0);
		const char *hint = reply_string(warning, "hint");
		if (hint[0] != '\0') {
			fprintf(stderr, " (");
			reply_print(stderr, hint, 0);
			fputc(')', stderr);
		}
		fputc('\n', stderr);
	}
}

static void report_finished(const json_t *params)
{
	double samples = (double)reply_integer(params, "samples");
	const json_t *summary = json_object_get(params, "summary");
	fprintf(stderr, "profctl: %.0f samples in %.2f s, %" JSON_INTEGER_FORMAT " lost\n", samples,
		(double)reply_integer(summary, "duration_ms") / 1000.0, reply_integer(params, "lost"));
	const char *reason = reply_string(params, "reason");
	if (strcmp(reason, "target_exited") != 0 && strcmp(reason, "duration") != 0) {
		fprintf(stderr, "profctl: the sampling was ended by: %s\n", reason);
	}
	if (samples > 0) {
		report_top(summary, samples);
	}
	report_warnings(params);
	static const char *const paths[] = {"svg_path", "folded_path", "metadata_path"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (reply_string(params, paths[i])[0] != '\0') {
			reply_print(stderr, reply_string(params, paths[i]), 0);
			fputc('\n', stderr);
		}
	}
}

void record_report(const struct record *record)
{
	if (record->final == NULL) {
		if (record->lost.code != ERROR_CANCELLED) {
			fprintf(stderr, "profctl: the profile was lost, the program was not disturbed\n");
		}
		profctl_complain(&record->lost);
		return;
	}
	const json_t *params = profclient_event_params(record->final);
	if (strcmp(profclient_event_name(record->final), EVENT_SAMPLING_PROFILE_FINISHED) == 0) {
		if (!record->quiet) {
			report_finished(params);
		}
		return;
	}
	struct error err = {0};
	if (!error_from_json(&err, json_object_get(params, "error"))) {
		error_set(&err, ERROR_INTERNAL, "the capture failed without saying why");
	}
	error_wrap(&err, "there is no profile");
	profctl_complain(&err);
}
