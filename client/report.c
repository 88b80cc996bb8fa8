#include "client/report.h"

#include <string.h>

#include "client/advice.h"
#include "client/reply.h"

void report_top(FILE *out, const json_t *record)
{
	double samples = (double)reply_integer(record, "samples");
	const json_t *top = json_object_get(json_object_get(record, "summary"), "top");
	size_t index;
	const json_t *entry;
	if (samples <= 0 || json_array_size(top) == 0) {
		return;
	}
	fprintf(out, "   self   total  function\n");
	json_array_foreach(top, index, entry)
	{
		fprintf(out, "%6.1f%% %6.1f%%  ", 100.0 * (double)reply_integer(entry, "self") / samples,
			100.0 * (double)reply_integer(entry, "total") / samples);
		reply_print(out, reply_string(entry, "function"), 0);
		fputc('\n', out);
	}
}

/* "frame 2" or "frames 2 to 3". */
static void print_range(FILE *out, json_int_t first, json_int_t last)
{
	if (first == last) {
		fprintf(out, "frame %" JSON_INTEGER_FORMAT, first);
	} else {
		fprintf(out, "frames %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT, first, last);
	}
}

static void print_asked(FILE *out, const json_t *params)
{
	const json_t *start = json_object_get(params, "start_frame");
	const json_t *end = json_object_get(params, "end_frame");
	if (json_is_integer(start)) {
		json_int_t first = json_integer_value(start);
		print_range(out, first, json_is_integer(end) ? json_integer_value(end) : first);
	} else if (json_is_integer(json_object_get(params, "frames"))) {
		json_int_t count = reply_integer(params, "frames");
		fprintf(
			out, "%" JSON_INTEGER_FORMAT " frame%s from the first on", count, count > 1 ? "s" : "");
	} else if (json_is_integer(json_object_get(params, "duration_ms"))) {
		fprintf(out, "%g s", (double)reply_integer(params, "duration_ms") / 1000.0);
	} else {
		fputs("all until it is ended", out);
	}
}

void report_frames(FILE *out, const json_t *record)
{
	const json_t *device = json_object_get(record, "device");
	if (json_is_integer(json_object_get(record, "last_frame"))) {
		fputs("recorded ", out);
		print_range(out, reply_integer(record, "first_frame"), reply_integer(record, "last_frame"));
		fputc(' ', out);
	}
	fputs("(asked for: ", out);
	print_asked(out, record);
	fprintf(out, ") by ");
	reply_print(out, reply_string(record, "frame_by"), 0);
	if (json_is_object(device)) {
		fputs(" on ", out);
		reply_print(out, reply_string(device, "name"), 0);
	}
	fputc('\n', out);
}

void report_reason(FILE *out, const char *what, const json_t *record)
{
	static const struct {
		const char *protocol, *told;
	} reasons[] = {{"stopped", "it was stopped"},
		{"target_exited", "the program has ended, or what it showed"},
		{"target_privileged", "the program got other rights"},
		{"limit", "it has reached its largest size"}, {"disk_full", "the disk is full"},
		{"client_exited", "its profctl has ended"}, {"daemon_shutdown", "profd was stopped"},
		{"timeout", "nothing came in time"},
		{"recovered", "profd had died, and finished it later"}};
	const char *reason = reply_string(record, "reason"), *told = reason;
	if (strcmp(reason, "frames") == 0 || strcmp(reason, "duration") == 0) {
		return;
	}
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		told = strcmp(reasons[i].protocol, reason) == 0 ? reasons[i].told : told;
	}
	fprintf(out, "profctl: the %s ended: ", what);
	reply_print(out, told, 0);
	fputc('\n', out);
}

void report_warnings(FILE *out, const json_t *record)
{
	size_t index;
	const json_t *warning;
	json_array_foreach(json_object_get(record, "warnings"), index, warning)
	{
		fprintf(out, "warning: ");
		reply_print(out, reply_string(warning, "message"), 0);
		const char *hint = reply_string(warning, "hint");
		if (hint[0] != '\0') {
			fprintf(out, " (");
			advice_print(out, hint);
			fputc(')', out);
		}
		fputc('\n', out);
	}
}

void report_paths(FILE *out, const json_t *record)
{
	static const char *const paths[] = {"trace_path", "svg_path", "folded_path", "metadata_path"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (reply_string(record, paths[i])[0] != '\0') {
			reply_print(out, reply_string(record, paths[i]), 0);
			fputc('\n', out);
		}
	}
}
