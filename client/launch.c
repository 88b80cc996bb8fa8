#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/follow.h"
#include "client/input.h"
#include "client/profctl.h"
#include "client/reply.h"
#include "client/stack_options.h"
#include "client/svg.h"
#include "protocol/gate.h"
#include "protocol/limits.h"
#include "protocol/text.h"

extern char **environ;

/* One `profctl launch`: what was asked for. */
struct launch {
	struct profctl *profctl;
	json_t *params;  /* owned; LaunchProcess's */
	json_t *env;     /* owned; the program's whole environment */
	json_t *profile; /* owned; or NULL */
	bool follows, passes_input;
	const char *stdio; /* borrowed; as it was given */
};

enum launch_option {
	LAUNCH_ID = PROFCTL_OWN,
	LAUNCH_STDIO,
	LAUNCH_HOLD,
	LAUNCH_PROFILE,
	LAUNCH_ENV,
	LAUNCH_CWD,
	LAUNCH_LEAVE,
	LAUNCH_SVG,
};

static const struct option launch_options[] = {{"follow", no_argument, NULL, 'f'},
	{"input", no_argument, NULL, 'i'}, {"id", required_argument, NULL, LAUNCH_ID},
	{"stdio", required_argument, NULL, LAUNCH_STDIO}, {"hold", no_argument, NULL, LAUNCH_HOLD},
	{"profile", no_argument, NULL, LAUNCH_PROFILE}, {"hz", required_argument, NULL, 'F'},
	{"duration", required_argument, NULL, 'd'}, {"env", required_argument, NULL, LAUNCH_ENV},
	{"cwd", required_argument, NULL, LAUNCH_CWD}, {"leave", no_argument, NULL, LAUNCH_LEAVE},
	{"svg", required_argument, NULL, LAUNCH_SVG}, STACK_OPTIONS, PROFCTL_OPTIONS};

/* "NAME=VALUE" into an object. False: it has no name, or is not UTF-8. */
static bool set_variable(json_t *env, const char *pair)
{
	const char *equals = strchr(pair, '=');
	if (equals == NULL || equals == pair || !text_is_utf8(pair, strlen(pair))) {
		return false;
	}
	char *name = strndup(pair, (size_t)(equals - pair));
	bool ok = name != NULL && json_object_set_new(env, name, json_string(equals + 1)) == 0;
	free(name);
	return ok;
}

/* Ours: a program that is launched from a shell expects the shell's environment, not the daemon's. */
static json_t *own_environment(void)
{
	json_t *env = json_object();
	for (char **pair = environ; *pair != NULL; pair++) {
		if (!set_variable(env, *pair)) {
			fputs("profctl: the program does not get the variable ", stderr);
			reply_print(stderr, *pair, 0);
			fputs(", which is no UTF-8 text NAME=VALUE\n", stderr);
		}
	}
	return env;
}

static bool set_folder(struct launch *launch, const char *path)
{
	char *full = realpath(path, NULL);
	if (full == NULL) {
		fprintf(stderr, "profctl: --cwd %s: %s\n", path, strerror(errno));
		return false;
	}
	bool ok = profctl_set_text(launch->params, "cwd", "the working folder", full);
	free(full);
	return ok;
}

/* Where this shell is. */
static bool set_here(struct launch *launch)
{
	char *here = getcwd(NULL, 0);
	if (here == NULL) {
		fprintf(stderr, "profctl: the working folder: %s (--cwd names another)\n", strerror(errno));
		return false;
	}
	bool ok = profctl_set_text(launch->params, "cwd", "the working folder", here);
	free(here);
	return ok;
}

static json_t *profile_of(struct launch *launch)
{
	if (launch->profile == NULL) {
		launch->profile = json_object();
	}
	return launch->profile;
}

static bool set_number(struct launch *launch, int option, const char *text)
{
	json_int_t value = 0;
	bool ok = option == 'F' ? profctl_whole("-F", text, 1, LIMIT_INTEGER, &value)
							: profctl_seconds("-d", text, false, &value);
	if (ok) {
		json_object_set_new(
			profile_of(launch), option == 'F' ? "hz" : "duration_ms", json_integer(value));
	}
	return ok;
}

static bool take_option(struct launch *launch, int option)
{
	if (stack_option_is(option)) {
		return stack_option_set(profile_of(launch), option, optarg);
	}
	switch (option) {
	case 'i':
		launch->passes_input = true;
		launch->follows = true;
		return true;
	case 'f':
		launch->follows = true;
		return true;
	case 'F':
	case 'd':
		return set_number(launch, option, optarg);
	case LAUNCH_ID:
		return profctl_set_text(launch->params, "build_id", "the value of --id", optarg);
	case LAUNCH_STDIO:
		launch->stdio = optarg;
		return profctl_set_text(launch->params, "stdio", "the value of --stdio", optarg);
	case LAUNCH_HOLD:
		return json_object_set_new(launch->params, "hold", json_true()) == 0;
	case LAUNCH_PROFILE:
		return profile_of(launch) != NULL;
	case LAUNCH_ENV:
		if (!set_variable(launch->env, optarg)) {
			fprintf(stderr, "profctl: --env %s: NAME=VALUE is needed, in UTF-8\n", optarg);
			return false;
		}
		return true;
	case LAUNCH_CWD:
		return set_folder(launch, optarg);
	case LAUNCH_LEAVE:
		return profctl_set_text(launch->params, "on_daemon_exit", "--leave", "leave");
	case LAUNCH_SVG:
		return svg_set_in(profile_of(launch), optarg);
	default:
		return false; /* told */
	}
}

/* False: *status. */
static bool parse(struct launch *launch, int argc, char **argv, int *status)
{
	int option = 0;
	launch->env = own_environment();
	launch->params = json_pack("{s:s}", "env_mode", "exact");
	*status = EXIT_USAGE;
	while ((option = profctl_option(launch->profctl, &launch_command, argc, argv)) != -1) {
		if (!take_option(launch, option)) {
			*status = profctl_end(option);
			return false;
		}
	}
	if (optind == argc) {
		profctl_usage(&launch_command);
		return false;
	}
	json_t *words = json_array();
	json_object_set_new(launch->params, "argv", words);
	for (int i = optind; i < argc; i++) {
		char what[64];
		snprintf(what, sizeof(what), "argument %d of the program", i - optind);
		if (!profctl_text(what, argv[i]) ||
			json_array_append_new(words, json_string(argv[i])) != 0) {
			return false;
		}
	}
	if (json_object_get(launch->params, "cwd") == NULL && !set_here(launch)) {
		return false;
	}
	json_object_set(launch->params, "env", launch->env);
	if (launch->profile != NULL) {
		json_object_set(launch->params, "profile", launch->profile);
	}
	return true;
}

/* Whatever has come, until there is nothing more. */
static bool take_events(struct follow *follow, struct error *err)
{
	for (;;) {
		json_t *event = NULL;
		enum profclient_got got = profctl_event(follow->client, 0, &event, err);
		bool ok =
			got == PROFCLIENT_NOTHING || (got == PROFCLIENT_GOT && follow_take(follow, event, err));
		json_decref(event);
		if (got != PROFCLIENT_GOT || !ok) {
			return ok;
		}
	}
}

/* Passes input on until the program ends or reads no more. */
static bool follow_with_input(struct follow *follow, struct error *err)
{
	static struct input input;
	bool readable = false;
	input_init(&input, follow->client, follow->build_id);
	while (follow->exited == NULL && !input.done) {
		struct error input_err = {0};
		if (!take_events(follow, err)) {
			return false;
		}
		if (!input_work(&input, readable, &input_err)) {
			/* A program that reads no more, or has ended, is no failure: so it is in a pipe. */
			if (strcmp(input_err.detail, "stdin_closed") != 0 &&
				input_err.code != ERROR_BUILD_NOT_RUNNING) {
				*err = input_err;
				return false;
			}
			break;
		}
		readable = false;
		if (follow->exited != NULL || profclient_has_event(follow->client)) {
			continue;
		}
		struct pollfd fds[2] = {
			{.fd = profclient_fd(follow->client),
				.events = profclient_wants_write(follow->client) ? POLLIN | POLLOUT : POLLIN},
			{.fd = input_wants_read(&input) ? STDIN_FILENO : -1, .events = POLLIN}};
		poll(fds, 2, input_timeout_ms(&input));
		readable = fds[1].revents != 0;
	}
	return true;
}

static void print_launched(const struct launch *launch, const json_t *reply)
{
	char id[LIMIT_ID_BYTES + 1];
	reply_id(json_object_get(reply, "build_id"), id, sizeof(id));
	if (launch->profctl->json) {
		profctl_print_json(stdout, reply);
	} else if (!launch->follows) {
		reply_print(stdout, id, 0);
		putchar('\n');
	}
	fflush(stdout);
	if (!launch->profctl->json && reply_string(reply, "capture_id")[0] != '\0') {
		fprintf(stderr, "profctl: capture %s\n", reply_string(reply, "capture_id"));
	}
}

/* A terminal has one stream, and what goes nowhere none. */
static void choose_streams(const char *stdio, struct follow *follow)
{
	bool is_null = strcmp(stdio, "null") == 0;
	follow->polls = strcmp(stdio, "file") == 0;
	if (is_null || strcmp(stdio, "pty") == 0) {
		follow->streams[1].fd = -1;
	}
	if (is_null) {
		follow->streams[0].fd = -1;
	}
}

/* That its capture failed changes nothing of the program's status. */
static void tell_failed_capture(struct profclient *client, const json_t *reply)
{
	struct error err = {0};
	const char *id = reply_string(reply, "capture_id");
	json_t *record = id[0] == '\0' ? NULL
								   : profctl_try(client, "WaitCapture",
										 json_pack("{s:s}", "capture_id", id), &err);
	if (record != NULL && error_from_json(&err, json_object_get(record, "error"))) {
		error_wrap(&err, "there is no profile");
		profctl_complain_of_options(&err);
	} else if (record == NULL && err.code != ERROR_NONE) {
		profctl_complain(&err);
	}
	json_decref(record);
}

/* Until the program has ended; its exit status, or that of why it was lost from sight, which is none of those of a program that did not run. */
static int follow_program(
	const struct launch *launch, struct profclient *client, const json_t *reply)
{
	struct follow follow;
	struct error err = {0};
	follow_init(&follow, launch->profctl, client, json_object_get(reply, "build_id"));
	choose_streams(launch->stdio, &follow);
	bool ok =
		(!launch->passes_input || follow_with_input(&follow, &err)) && follow_run(&follow, &err);
	int status = EXIT_FAILED;
	if (ok) {
		status = follow_status(follow.exited);
		tell_failed_capture(client, reply);
		if (launch->profctl->json) {
			profctl_print_json(stdout, follow.exited);
		}
	} else {
		status = profctl_fail(launch->profctl, &err);
	}
	follow_finish(&follow);
	return status;
}

/* As record's, which is a shell's. */
static int exit_of_failure(const struct error *err)
{
	if (err->code != ERROR_LAUNCH_FAILED) {
		return GATE_EXIT_NO_GO;
	}
	return strcmp(err->detail, "not_found") == 0 ? GATE_EXIT_NOT_FOUND : GATE_EXIT_CANNOT_RUN;
}

static int run_launch(struct profctl *profctl, int argc, char **argv)
{
	struct launch launch = {.profctl = profctl, .stdio = "pipe"};
	int status = EXIT_SUCCESS;
	if (parse(&launch, argc, argv, &status)) {
		status = EXIT_SUCCESS;
		struct profclient *client = profctl_connect(profctl, true, &status);
		json_object_set_new(launch.params, "subscribe", json_boolean(launch.follows));
		struct error err = {0};
		json_t *reply =
			client == NULL ? NULL
						   : profctl_try(client, "LaunchProcess", json_incref(launch.params), &err);
		if (client != NULL && reply == NULL) {
			status = profctl_fail_of_options(profctl, &err);
		}
		if (reply != NULL) {
			print_launched(&launch, reply);
			status = launch.follows ? follow_program(&launch, client, reply) : EXIT_SUCCESS;
		} else if (launch.follows) {
			status = exit_of_failure(&err);
		}
		json_decref(reply);
		profclient_close(client);
	}
	json_decref(launch.params);
	json_decref(launch.env);
	json_decref(launch.profile);
	return status;
}

const struct profctl_command launch_command = {
	.name = "launch",
	.synopsis = "[-f] [-i] [--id BUILD] [--stdio KIND] [--hold] [--profile] [-F HZ] [-d SECONDS] "
				"[--env NAME=VALUE] [--cwd FOLDER] [--leave] [--] PROGRAM [ARGUMENT …]",
	.about = "let the daemon run a program; prints its build id",
	.help = "  -f, --follow            print its output, and exit as it does\n"
			"  -i, --input             as -f, and pass standard input on to it\n"
			"      --id BUILD          its name; by default the daemon makes one\n"
			"      --stdio KIND        pipe (the default), null, file or pty\n"
			"      --hold              stop before its first instruction, until profctl resume\n"
			"      --profile           sample it from its first instruction\n"
			"  -F, --hz HZ             with --profile (implied): samples a second, per thread\n"
			"  -d, --duration SECONDS  with --profile (implied): end the sampling after so long\n"
			"      --unwind METHOD\n"
			"      --max-depth FRAMES\n"
			"      --no-stitch\n"
			"      --svg KEY=VALUE     with --profile (implied): these four as record's\n"
			"      --env NAME=VALUE    beside the variables of this shell\n"
			"      --cwd FOLDER        where it starts; by default here\n"
			"      --leave             it stays when the daemon ends (not with pipe or pty)\n",
	.short_options = "+fiF:d:",
	.options = launch_options,
	.run = run_launch,
};
