#include "client/recording.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/clock.h"
#include "protocol/programs.h"

#define PATH_BYTES     4096
#define WAIT_STEP_MS   250
#define WAIT_NOTICE_NS UINT64_C(2000000000)

extern char **environ;

bool recording_connect(struct recording *recording, const struct profctl *profctl, bool quiet)
{
	/* --json is for the capture's end: an error is told as text. */
	const struct profctl ours = {
		.socket_given = profctl->socket_given, .no_start = profctl->no_start};
	int status = EXIT_SUCCESS;
	/* A line that is drawn over and over would spoil what the program shows on the same terminal. */
	recording->shows_progress = !quiet && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
	recording->client = profctl_connect(&ours, true, &status);
	return recording->client != NULL;
}

/* --- the program --- */

static bool start_gate(
	struct recording *recording, const struct gate_options *options, struct error *err)
{
	struct sigaction ignored = {.sa_handler = SIG_IGN}, ours;
	job_catch_signals();
	sigemptyset(&ignored.sa_mask);
	if (recording->ignores_interrupts) {
		sigaction(SIGINT, &ignored, &ours);
	}
	bool ok = gate_start(&recording->gate, options, err);
	if (recording->ignores_interrupts) {
		sigaction(SIGINT, &ours, NULL);
	}
	return ok;
}

bool recording_start_gate(struct recording *recording, char **argv, struct error *err)
{
	char gate_path[PATH_BYTES];
	if (!programs_find("profd-gate", gate_path, sizeof(gate_path), err)) {
		return false;
	}
	struct gate_options options = {
		.gate_path = gate_path,
		.argv = (const char *const *)argv,
		.env = (const char *const *)environ,
		.keep_inherited = true,
		.umask_bits = -1,
		.nofile_soft = -1,
		.nofile_hard = -1,
		.profiler_pid = (pid_t)reply_integer(profclient_hello(recording->client), "pid"),
		.stdio = {-1, -1, -1},
	};
	if (!start_gate(recording, &options, err)) {
		return false;
	}
	if (!job_watch(&recording->job, recording->gate.pid)) {
		return error_errno(err, "watch process %d", (int)recording->gate.pid);
	}
	return gate_wait(&recording->gate, false, -1, err) == GATE_IS_READY;
}

bool recording_take_reply(struct recording *recording, json_t *reply, struct error *err)
{
	const char *id = json_string_value(json_object_get(reply, "capture_id"));
	if (reply != NULL && id == NULL) {
		error_set(err, ERROR_INTERNAL, "profd started a capture without naming it");
	}
	snprintf(recording->capture_id, sizeof(recording->capture_id), "%s", id != NULL ? id : "");
	json_decref(reply);
	return id != NULL;
}

/* Of a program that never ran, also when the capture has ended with it by itself. */
static void discard_capture(const struct recording *recording)
{
	json_decref(profctl_try(recording->client, "StopCapture",
		json_pack("{s:s, s:b}", "capture_id", recording->capture_id, "discard", 1), NULL));
}

bool recording_go(struct recording *recording, struct error *err)
{
	if (!gate_go(&recording->gate, err) ||
		gate_wait(&recording->gate, true, -1, err) != GATE_RUNNING) {
		discard_capture(recording);
		return false;
	}
	gate_close(&recording->gate);
	return true;
}

int recording_not_run(struct recording *recording, const struct error *err)
{
	recording_clear_progress(recording);
	profctl_complain_of_options(err);
	gate_close(&recording->gate);
	if (recording->job.pid <= 0 || !job_reap(&recording->job, true)) {
		return GATE_EXIT_NO_GO;
	}
	int status = job_shell_status(&recording->job);
	return status >= GATE_EXIT_NO_GO && status <= GATE_EXIT_NOT_FOUND ? status : GATE_EXIT_NO_GO;
}

/* --- following --- */

/* Takes message. */
static void take_message(struct recording *recording, json_t *message)
{
	const char *name = profclient_event_name(message);
	const json_t *params = profclient_event_params(message);
	bool is_ours = strcmp(reply_string(params, "capture_id"), recording->capture_id) == 0;
	if (is_ours && strcmp(name, recording->progress) == 0 && recording->show_progress != NULL) {
		recording->show_progress(recording->context, params);
	}
	if (is_ours &&
		(strcmp(name, recording->finished) == 0 || strcmp(name, recording->failed) == 0)) {
		recording->final = json_incref(message);
	}
	json_decref(message);
}

static void read_messages(struct recording *recording)
{
	while (recording_is_open(recording)) {
		json_t *message = NULL;
		if (profctl_event(recording->client, 0, &message, &recording->lost) != PROFCLIENT_GOT) {
			return;
		}
		take_message(recording, message);
	}
}

bool recording_is_open(const struct recording *recording)
{
	return recording->final == NULL && recording->lost.code == ERROR_NONE;
}

void recording_follow_program(struct recording *recording)
{
	while (!job_reap(&recording->job, false)) {
		read_messages(recording);
		if (recording->look != NULL) {
			recording->look(recording->context);
		}
		int fd = recording_is_open(recording) ? profclient_fd(recording->client) : -1;
		job_wait(&recording->job, fd, -1);
	}
}

static void announce_wait(const struct recording *recording)
{
	recording_clear_progress(recording);
	fprintf(stderr, "profctl: the program has ended; waiting for its %s, Ctrl-C leaves\n",
		recording->what);
}

void recording_follow_capture(struct recording *recording)
{
	int before = job_signals_seen();
	uint64_t notice_ns = clock_monotonic_ns() + WAIT_NOTICE_NS;
	for (;;) {
		read_messages(recording);
		if (!recording_is_open(recording)) {
			return;
		}
		if (job_signals_seen() != before) {
			break;
		}
		if (clock_monotonic_ns() >= notice_ns) {
			notice_ns = UINT64_MAX;
			announce_wait(recording);
		}
		job_wait(&recording->job, profclient_fd(recording->client), WAIT_STEP_MS);
	}
	error_set(&recording->lost, ERROR_CANCELLED, "the %s was not waited for", recording->what);
	error_hint(&recording->lost, "profd goes on with it: it is capture %s in profctl captures",
		recording->capture_id);
}

/* --- what is told --- */

void recording_clear_progress(const struct recording *recording)
{
	if (recording->shows_progress) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
}

void recording_tell_failure(const struct recording *recording)
{
	struct error err = {0};
	const json_t *params = profclient_event_params(recording->final);
	if (!error_from_json(&err, json_object_get(params, "error"))) {
		error_set(&err, ERROR_INTERNAL, "the capture failed without saying why");
	}
	error_wrap(&err, "there is no %s", recording->what);
	profctl_complain_of_options(&err);
}

void recording_finish(struct recording *recording)
{
	gate_close(&recording->gate);
	job_finish(&recording->job);
	json_decref(recording->final);
	profclient_close(recording->client);
}
