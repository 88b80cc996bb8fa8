#include "client/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/profctl.h"
#include "protocol/names.h"

static json_int_t integer_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static const char *string_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

/* Names are the target's choice: nothing in them may drive the terminal. */
static void print_text(const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char byte = (unsigned char)*text;
		fputc(byte < 0x20 || byte == 0x7f ? '?' : byte, stderr);
	}
}

void record_show_progress(const struct record *record, const json_t *params)
{
	if (!record->shows_progress) {
		return;
	}
	fprintf(stderr,
		"\r\033[K%s: %.1f s, %" JSON_INTEGER_FORMAT " samples, %" JSON_INTEGER_FORMAT " threads",
		string_of(params, "state"), (double)integer_of(params, "elapsed_ms") / 1000.0,
		integer_of(params, "samples"), integer_of(params, "threads"));
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
		fprintf(stderr, "%6.1f%% %6.1f%%  ", 100.0 * (double)integer_of(entry, "self") / samples,
			100.0 * (double)integer_of(entry, "total") / samples);
		print_text(string_of(entry, "function"));
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
		print_text(string_of(warning, "message"));
		const char *hint = string_of(warning, "hint");
		if (hint[0] != '\0') {
			fprintf(stderr, " (");
			print_text(hint);
			fputc(')', stderr);
		}
		fputc('\n', stderr);
	}
}

static void report_finished(const json_t *params)
{
	double samples = (double)integer_of(params, "samples");
	const json_t *summary = json_object_get(params, "summary");
	fprintf(stderr, "profctl: %.0f samples in %.2f s, %" JSON_INTEGER_FORMAT " lost\n", samples,
		(double)integer_of(summary, "duration_ms") / 1000.0, integer_of(params, "lost"));
	const char *reason = string_of(params, "reason");
	if (strcmp(reason, "target_exited") != 0 && strcmp(reason, "duration") != 0) {
		fprintf(stderr, "profctl: the sampling was ended by: %s\n", reason);
	}
	if (samples > 0) {
		report_top(summary, samples);
	}
	report_warnings(params);
	static const char *const paths[] = {"svg_path", "folded_path", "metadata_path"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (string_of(params, paths[i])[0] != '\0') {
			print_text(string_of(params, paths[i]));
			fputc('\n', stderr);
		}
	}
}

void record_report(const struct record *record)
{
	if (record->final == NULL) {
		fprintf(stderr, "profctl: the profile was lost, the program was not disturbed\n");
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
