#include "client/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "client/stack_options.h"
#include "client/svg.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/programs.h"
#include "protocol/text.h"

#define PATH_BYTES     4096
#define WAIT_STEP_MS   250
#define WAIT_NOTICE_NS UINT64_C(2000000000)

extern char **environ;

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

/* What the protocol cannot carry must not be left out silently. */
static bool is_told(const char *what, const char *text)
{
	if (!text_is_utf8(text, strlen(text))) {
		fprintf(stderr, "profctl: the %s is not UTF-8, which the protocol needs\n", what);
		return false;
	}
	return true;
}

static bool take_option(struct record *record, int option, const char *value)
{
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
		return record->output_dir != NULL && is_told("output folder", record->output_dir);
	case 'k':
		record->kernel = true;
		return true;
	case 'l':
		record->label = value;
		return is_told("label", value);
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

/* False: *status. */
static bool parse(
	struct record *record, struct profctl *profctl, int argc, char **argv, int *status)
{
	for (int option; (option = profctl_option(profctl, &record_command, argc, argv)) != -1;) {
		if (!take_option(record, option, optarg)) {
			*status = option == PROFCTL_HELP ? EXIT_SUCCESS : GATE_EXIT_NO_GO;
			return false;
		}
	}
	record->argv = argv + optind;
	record->json = profctl->json;
	if (optind == argc || argv[optind][0] == '\0') {
		profctl_usage(&record_command);
		return false;
	}
	return true;
}

/* --- the program --- */

static bool start_gate(struct record *record, pid_t daemon_pid, struct error *err)
{
	char gate_path[PATH_BYTES];
	if (!programs_find("profd-gate", gate_path, sizeof(gate_path), err)) {
		return false;
	}
	struct gate_options options = {
		.gate_path = gate_path,
		.argv = (const char *const *)record->argv,
		.env = (const char *const *)environ,
		.keep_inherited = true,
		.umask_bits = -1,
		.nofile_soft = -1,
		.nofile_hard = -1,
		.profiler_pid = daemon_pid,
		.stdio = {-1, -1, -1},
	};
	if (!gate_start(&record->gate, &options, err)) {
		return false;
	}
	if (!job_watch(&record->job, record->gate.pid)) {
		return error_errno(err, "watch process %d", (int)record->gate.pid);
	}
	return gate_wait(&record->gate, false, -1, err) == GATE_IS_READY;
}

/* 127 or 126 when the gate said so, 125 when it had no chance. Ends the gate. */
static int not_run(struct record *record, const struct error *err)
{
	record_clear_progress(record);
	profctl_complain(err);
	gate_close(&record->gate);
	if (record->job.pid <= 0 || !job_reap(&record->job, true)) {
		return GATE_EXIT_NO_GO;
	}
	int status = job_shell_status(&record->job);
	return status >= GATE_EXIT_NO_GO && status <= GATE_EXIT_NOT_FOUND ? status : GATE_EXIT_NO_GO;
}

/* --- the capture --- */

static bool start_capture(struct record *record, struct error *err)
{
	json_t *params =
		json_pack("{s:i, s:b}", "pid", (int)record->gate.pid, "kernel", record->kernel);
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
	json_t *reply = profctl_try(record->client, "StartSamplingProfile", params, err);
	const char *id = json_string_value(json_object_get(reply, "capture_id"));
	if (reply != NULL && id == NULL) {
		error_set(err, ERROR_INTERNAL, "profd started a capture without naming it");
	}
	snprintf(record->capture_id, sizeof(record->capture_id), "%s", id != NULL ? id : "");
	json_decref(reply);
	return id != NULL;
}

/* --- following --- */

/* Takes one message; true when it is the capture's end. Takes message. */
static bool take_message(struct record *record, json_t *message)
{
	const char *name = profclient_event_name(message);
	const json_t *params = profclient_event_params(message);
	const char *id = json_string_value(json_object_get(params, "capture_id"));
	bool is_ours = id != NULL && strcmp(id, record->capture_id) == 0;
	if (is_ours && strcmp(name, EVENT_SAMPLING_PROFILE_PROGRESS) == 0) {
		record_show_progress(record, params);
	}
	bool ended = is_ours && (strcmp(name, EVENT_SAMPLING_PROFILE_FINISHED) == 0 ||
								strcmp(name, EVENT_SAMPLING_PROFILE_FAILED) == 0);
	if (ended) {
		record->final = json_incref(message);
	}
	json_decref(message);
	return ended;
}

static void read_messages(struct record *record)
{
	while (record->final == NULL && record->lost.code == ERROR_NONE) {
		json_t *message = NULL;
		if (profctl_event(record->client, 0, &message, &record->lost) != PROFCLIENT_GOT) {
			return;
		}
		take_message(record, message);
	}
}

static bool is_open(const struct record *record)
{
	return record->final == NULL && record->lost.code == ERROR_NONE;
}

static void follow_program(struct record *record)
{
	while (!job_reap(&record->job, false)) {
		read_messages(record);
		job_wait(&record->job, is_open(record) ? profclient_fd(record->client) : -1, -1);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void announce_wait(const struct record *record)
{
	record_clear_progress(record);
	fprintf(stderr, "profctl: the program has ended; waiting for its profile, Ctrl-C leaves\n");
}

/* Until the capture has ended too, or cannot any more, or nobody wants to wait. */
static void follow_capture(struct record *record)
{
	int before = job_signals_seen();
	uint64_t notice_ns = now_ns() + WAIT_NOTICE_NS;
	for (;;) {
		read_messages(record);
		if (!is_open(record)) {
			return;
		}
		if (job_signals_seen() != before) {
			break;
		}
		if (now_ns() >= notice_ns) {
			notice_ns = UINT64_MAX;
			announce_wait(record);
		}
		job_wait(&record->job, profclient_fd(record->client), WAIT_STEP_MS);
	}
	error_set(&record->lost, ERROR_CANCELLED, "the profile was not waited for");
	error_hint(&record->lost, "profd goes on with it: it is capture %s in profctl captures",
		record->capture_id);
}

/* Of a program that never ran, also when the capture has ended with it by itself. */
static void discard_capture(const struct record *record)
{
	json_decref(profctl_try(record->client, "StopCapture",
		json_pack("{s:s, s:b}", "capture_id", record->capture_id, "discard", 1), NULL));
}

/* --- the command --- */

static int run_program(struct record *record)
{
	struct error err = {0};
	json_int_t profiler = reply_integer(profclient_hello(record->client), "pid");
	if (!start_gate(record, (pid_t)profiler, &err) || !start_capture(record, &err)) {
		return not_run(record, &err);
	}
	if (!gate_go(&record->gate, &err) || gate_wait(&record->gate, true, -1, &err) != GATE_RUNNING) {
		discard_capture(record);
		return not_run(record, &err);
	}
	gate_close(&record->gate);
	follow_program(record);
	follow_capture(record);
	record_clear_progress(record);
	record_report(record);
	return job_shell_status(&record->job);
}

static void finish(struct record *record)
{
	gate_close(&record->gate);
	job_finish(&record->job);
	json_decref(record->final);
	profclient_close(record->client);
	free(record->output_dir);
	json_decref(record->svg);
	json_decref(record->stacks);
}

static int run(struct profctl *profctl, int argc, char **argv)
{
	struct record record = {
		.job = {.pidfd = -1},
		.gate = {.fd = -1},
		.svg = json_object(),
		.stacks = json_object(),
	};
	int status = GATE_EXIT_NO_GO;
	if (parse(&record, profctl, argc, argv, &status)) {
		/* A line that is drawn over and over would spoil what the program shows on the same terminal. */
		record.shows_progress = !record.quiet && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
		job_catch_signals();
		int connected = EXIT_SUCCESS;
		record.client = profctl_connect(
			&(struct profctl){.socket_given = profctl->socket_given, .no_start = profctl->no_start},
			true, &connected);
		if (record.client != NULL) {
			status = run_program(&record);
		}
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
