#include "client/report.h"

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
	static const char *const paths[] = {"svg_path", "folded_path", "metadata_path"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (reply_string(record, paths[i])[0] != '\0') {
			reply_print(out, reply_string(record, paths[i]), 0);
			fputc('\n', out);
		}
	}
}
