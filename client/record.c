#include "client/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profctl.h"
#include "client/stack_options.h"
#include "client/svg.h"
#include "protocol/limits.h"
#include "protocol/names.h"

/* --- options --- */

enum record_option { RECORD_SVG = PROFCTL_OWN };

/* The folder as an absolute path: the daemon has another current folder. */
static char *absolute(const char *path)
{
	char *full = realpath(path, NULL);
	if (full == NULL) {
		fprintf(stderr, "profctl: output folder %s: %s\n", path, strerror(errno));
	}
	return full;
}

static bool take_option(void *context, int option, const char *value)
{
	struct record *record = context;
	if (stack_option_is(option)) {
		return stack_option_set(record->stacks, option, value);
	}
	switch (option) {
	case 'F':
		return profctl_whole("-F", value, 1, LIMIT_INTEGER, &record->hz);
	case 'd':
		return profctl_seconds("-d", value, false, &record->duration_ms);
	case 'o':
		free(record->output_dir);
		record->output_dir = absolute(value);
		return record->output_dir != NULL && profctl_text("the output folder", record->output_dir);
	case 'k':
		record->kernel = true;
		return true;
	case 'l':
		record->label = value;
		return profctl_text("the label", value);
	case 'q':
		record->quiet = true;
		return true;
	case RECORD_SVG:
		return svg_set(record->svg, value);
	default:
		return false; /* told */
	}
}

static const struct option record_options[] = {{"hz", required_argument, NULL, 'F'},
	{"duration", required_argument, NULL, 'd'}, {"output", required_argument, NULL, 'o'},
	{"kernel", no_argument, NULL, 'k'}, {"label", required_argument, NULL, 'l'},
	{"quiet", no_argument, NULL, 'q'}, {"svg", required_argument, NULL, RECORD_SVG}, STACK_OPTIONS,
	PROFCTL_OPTIONS};

/* --- the command --- */

static bool start_capture(struct record *record, struct error *err)
{
	json_t *params =
		json_pack("{s:i, s:b}", "pid", (int)record->recording.gate.pid, "kernel", record->kernel);
	if (json_object_size(record->svg) > 0) {
		json_object_set(params, "svg", record->svg);
	}
	json_object_update(params, record->stacks);
	if (record->hz > 0) {
		json_object_set_new(params, "hz", json_integer(record->hz));
	}
	if (record->duration_ms > 0) {
		json_object_set_new(params, "duration_ms", json_integer(record->duration_ms));
	}
	if (record->output_dir != NULL) {
		json_object_set_new(params, "output_dir", json_string(record->output_dir));
	}
	if (record->label != NULL) {
		json_object_set_new(params, "label", json_string(record->label));
	}
	json_t *reply = profctl_try(record->recording.client, "StartSamplingProfile", params, err);
	return recording_take_reply(&record->recording, reply, err);
}

static int run_program(struct record *record)
{
	struct error err = {0};
	struct recording *recording = &record->recording;
	if (!recording_start_gate(recording, record->argv, &err) || !start_capture(record, &err) ||
		!recording_go(recording, &err)) {
		return recording_not_run(recording, &err);
	}
	recording_follow_program(recording);
	recording_follow_capture(recording);
	recording_clear_progress(recording);
	record_report(record);
	return job_shell_status(&recording->job);
}

static void finish(struct record *record)
{
	recording_finish(&record->recording);
	free(record->output_dir);
	json_decref(record->svg);
	json_decref(record->stacks);
}

static int run(struct profctl *profctl, int argc, char **argv)
{
	struct record record = {
		.svg = json_object(),
		.stacks = json_object(),
		.recording = RECORDING_NONE,
	};
	struct recording *recording = &record.recording;
	recording->progress = EVENT_SAMPLING_PROFILE_PROGRESS;
	recording->finished = EVENT_SAMPLING_PROFILE_FINISHED;
	recording->failed = EVENT_SAMPLING_PROFILE_FAILED;
	recording->what = "profile";
	recording->show_progress = record_show_progress;
	recording->context = &record;
	int status = GATE_EXIT_NO_GO;
	if (profctl_program(
			profctl, &record_command, argc, argv, take_option, &record, &record.argv, &status) &&
		recording_connect(recording, profctl, record.quiet)) {
		record.json = profctl->json;
		status = run_program(&record);
	}
	finish(&record);
	return status;
}

const struct profctl_command record_command = {
	.name = "record",
	.synopsis = "[-F HZ] [-d SECONDS] [-o FOLDER] [--kernel] [--label TEXT] [--quiet] "
				"[--unwind METHOD] [--max-depth FRAMES] [--no-stitch] [--svg KEY=VALUE …] [--] "
				"PROGRAM [ARGUMENT …]",
	.about = "run a program in this terminal and profile it",
	.help =
		"  -F, --hz HZ             samples a second of CPU time, per thread; 999\n"
		"  -d, --duration SECONDS  end the sampling after so long, never the program\n"
		"  -o, --output FOLDER     where the capture's folder is made\n"
		"  -k, --kernel            show kernel frames\n"
		"  -l, --label TEXT        kept with the capture\n"
		"  -q, --quiet             print nothing unless something went wrong\n" STACK_HELP SVG_HELP,
	.short_options = "+F:d:o:kl:q",
	.options = record_options,
	.run = run,
};
