#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/captures.h"
#include "client/ids.h"
#include "client/profctl.h"
#include "client/reply.h"
#include "client/stack_options.h"
#include "client/svg.h"
#include "protocol/limits.h"

/* Starts a capture of a program that runs or is held. */

enum capture_option { CAPTURE_PID = PROFCTL_OWN, CAPTURE_SVG };

static const struct option capture_options[] = {{"hz", required_argument, NULL, 'F'},
	{"duration", required_argument, NULL, 'd'}, {"output", required_argument, NULL, 'o'},
	{"kernel", no_argument, NULL, 'k'}, {"label", required_argument, NULL, 'l'},
	{"wait", no_argument, NULL, 'w'}, {"pid", no_argument, NULL, CAPTURE_PID},
	{"svg", required_argument, NULL, CAPTURE_SVG}, STACK_OPTIONS, PROFCTL_OPTIONS};

struct wish {
	json_t *params; /* owned; StartSamplingProfile's */
	bool waits, is_pid;
};

/* The daemon has another current folder. */
static bool set_folder(struct wish *wish, const char *path)
{
	char *full = realpath(path, NULL);
	if (full == NULL) {
		fprintf(stderr, "profctl: output folder %s: %s\n", path, strerror(errno));
		return false;
	}
	bool ok = profctl_set_text(wish->params, "output_dir", "the output folder", full);
	free(full);
	return ok;
}

static bool take_option(struct wish *wish, int option)
{
	json_int_t value = 0;
	if (stack_option_is(option)) {
		return stack_option_set(wish->params, option, optarg);
	}
	switch (option) {
	case 'F':
		return profctl_whole("-F", optarg, 1, LIMIT_INTEGER, &value) &&
			   json_object_set_new(wish->params, "hz", json_integer(value)) == 0;
	case 'd':
		return profctl_seconds("-d", optarg, false, &value) &&
			   json_object_set_new(wish->params, "duration_ms", json_integer(value)) == 0;
	case 'o':
		return set_folder(wish, optarg);
	case 'k':
		return json_object_set_new(wish->params, "kernel", json_true()) == 0;
	case 'l':
		return profctl_set_text(wish->params, "label", "the label", optarg);
	case 'w':
		wish->waits = true;
		return true;
	case CAPTURE_PID:
		wish->is_pid = true;
		return true;
	case CAPTURE_SVG:
		return svg_set_in(wish->params, optarg);
	default:
		return false; /* told */
	}
}

/* A build when there is one of that id, otherwise a process when it is a number. False: err. */
static bool set_target(
	struct wish *wish, struct profclient *client, const char *text, struct error *err)
{
	char *end = NULL;
	errno = 0;
	long pid = strtol(text, &end, 10);
	bool is_number = errno == 0 && end != text && *end == '\0' && pid > 0 && pid <= INT_MAX;
	json_t *record = wish->is_pid ? NULL : ids_try_build(client, text, err);
	if (record != NULL) {
		json_object_set(wish->params, "build_id", json_object_get(record, "build_id"));
		json_decref(record);
		return true;
	}
	if (wish->is_pid && !is_number) {
		return error_set(err, ERROR_PROCESS_NOT_FOUND, "%s is no process id", text);
	}
	if (!wish->is_pid && (!is_number || err->code != ERROR_BUILD_NOT_FOUND)) {
		return false;
	}
	json_object_set_new(wish->params, "pid", json_integer(pid));
	return true;
}

static int start(const struct profctl *profctl, struct wish *wish, const char *target)
{
	int status = EXIT_SUCCESS;
	struct error err = {0};
	struct profclient *client = profctl_connect(profctl, true, &status);
	if (client == NULL) {
		return status;
	}
	json_object_set_new(wish->params, "subscribe", json_false());
	json_t *reply = NULL;
	if (!set_target(wish, client, target, &err)) {
		status = profctl_fail(profctl, &err);
	} else {
		reply = profctl_call(
			profctl, client, "StartSamplingProfile", json_incref(wish->params), &status);
	}
	if (reply != NULL && wish->waits) {
		status = captures_wait(profctl, client, reply_string(reply, "capture_id"), -1);
	} else if (reply != NULL && profctl->json) {
		profctl_print_json(stdout, reply);
	} else if (reply != NULL) {
		puts(reply_string(reply, "capture_id"));
	}
	json_decref(reply);
	profclient_close(client);
	return status;
}

static int run_capture(struct profctl *profctl, int argc, char **argv)
{
	struct wish wish = {.params = json_object()};
	int option = 0, status = EXIT_SUCCESS;
	while ((option = profctl_option(profctl, &capture_command, argc, argv)) != -1 &&
		   take_option(&wish, option)) {
	}
	if (option != -1) {
		status = profctl_end(option);
	} else if (argc - optind != 1) {
		status = profctl_usage(&capture_command);
	} else {
		status = start(profctl, &wish, argv[optind]);
	}
	json_decref(wish.params);
	return status;
}

const struct profctl_command capture_command = {
	.name = "capture",
	.synopsis = "[-F HZ] [-d SECONDS] [-o FOLDER] [--kernel] [--label TEXT] [--wait] "
				"[--unwind METHOD] [--max-depth FRAMES] [--no-stitch] [--svg KEY=VALUE …] "
				"BUILD|[--pid] PID",
	.about = "start to sample a program; prints the capture's id",
	.help = "  -F, --hz HZ             samples a second of CPU time, per thread; 999\n"
			"  -d, --duration SECONDS  end after so long; by default with the program\n"
			"  -o, --output FOLDER     where the capture's folder is made\n"
			"  -k, --kernel            show kernel frames\n"
			"  -l, --label TEXT        kept with the capture\n"
			"  -w, --wait              wait for its end, and show it\n"
			"      --pid               it is a process id, also when a build has that "
			"number\n" STACK_HELP SVG_HELP,
	.short_options = "F:d:o:kl:w",
	.options = capture_options,
	.run = run_capture,
};
