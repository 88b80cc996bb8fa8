#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/each.h"
#include "client/ids.h"
#include "client/listing.h"
#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/limits.h"

/* Commands about the programs that profd launched: ps, resume, stop, signal. */

/* --- ps --- */

static void print_process(const struct profctl *profctl, const json_t *record)
{
	(void)profctl;
	char id[LIMIT_ID_BYTES + 1], state[48];
	reply_id(json_object_get(record, "build_id"), id, sizeof(id));
	reply_print(stdout, id, 12);
	printf(" %8" JSON_INTEGER_FORMAT " ", reply_integer(record, "pid"));
	const json_t *code = json_object_get(record, "exit_code");
	if (reply_string(record, "signal")[0] != '\0') {
		snprintf(state, sizeof(state), "%s", reply_string(record, "signal"));
	} else if (json_is_integer(code)) {
		snprintf(state, sizeof(state), "exit %" JSON_INTEGER_FORMAT, json_integer_value(code));
	} else {
		snprintf(state, sizeof(state), "%s", reply_string(record, "state"));
	}
	reply_print(stdout, state, 10);
	putchar(' ');
	reply_print_time(stdout, reply_integer(record, "started_unix_us"), 20);
	size_t index;
	const json_t *argument;
	json_array_foreach(json_object_get(record, "argv"), index, argument)
	{
		putchar(' ');
		reply_print(stdout, json_string_value(argument), 0);
	}
	putchar('\n');
}

static int run_ps(struct profctl *profctl, int argc, char **argv)
{
	const struct listing listing = {&ps_command, "ListProcesses", "processes",
		"BUILD             PID STATE      STARTED              COMMAND", print_process};
	return listing_run(&listing, profctl, argc, argv);
}

/* --- resume --- */

static int run_resume(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	if (!profctl_operands(profctl, &resume_command, argc, argv, 1, argc, &status)) {
		return status;
	}
	struct each each = {
		.profctl = profctl, .method = "ResumeProcess", .id_name = "build_id", .find = ids_build};
	return each_run(&each, argc - optind, argv + optind);
}

/* A number is a number for the protocol, a name a name. NULL: not UTF-8. */
static json_t *signal_value(const char *text)
{
	bool is_number =
		text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && strlen(text) < 10;
	return is_number ? json_integer(strtol(text, NULL, 10)) : json_string(text);
}

/* --- stop --- */

static void print_survivors(const json_t *result)
{
	size_t index;
	const json_t *survivor;
	json_array_foreach(json_object_get(result, "survivors"), index, survivor)
	{
		const char *name = reply_string(survivor, "argv0");
		printf("  process %" JSON_INTEGER_FORMAT " had left its group and lives on: ",
			reply_integer(survivor, "pid"));
		reply_print(stdout, name[0] != '\0' ? name : reply_string(survivor, "name"), 0);
		putchar('\n');
	}
}

static void print_stopped(const char *id, const json_t *result)
{
	const json_t *code = json_object_get(result, "exit_code");
	fputs("build ", stdout);
	reply_print(stdout, id, 0);
	if (reply_string(result, "signal")[0] != '\0') {
		printf(": %s\n", reply_string(result, "signal"));
	} else if (json_is_integer(code)) {
		printf(": exit %" JSON_INTEGER_FORMAT "\n", json_integer_value(code));
	} else {
		puts(": stopped before it ran");
	}
	print_survivors(result);
}

static void print_capture_stopped(const char *id, const json_t *result)
{
	printf("capture %s: %s\n", id, reply_string(result, "state"));
}

enum stop_option { STOP_SIGNAL = 's', STOP_GRACE = 'g', STOP_CAPTURE = 'c', STOP_DISCARD = 'd' };

static const struct option stop_options[] = {{"signal", required_argument, NULL, STOP_SIGNAL},
	{"grace", required_argument, NULL, STOP_GRACE}, {"capture", no_argument, NULL, STOP_CAPTURE},
	{"discard", no_argument, NULL, STOP_DISCARD}, PROFCTL_OPTIONS};

/* The command line; false: *status. for_captures and params are changed. */
static bool parse_stop(
	struct profctl *profctl, int argc, char **argv, json_t *params, bool *for_captures, int *status)
{
	json_int_t grace_ms = 0;
	int option = 0;
	while ((option = profctl_option(profctl, &stop_command, argc, argv)) != -1) {
		if (option == STOP_SIGNAL) {
			json_object_set_new(params, "signal", signal_value(optarg));
		} else if (option == STOP_GRACE && profctl_seconds("--grace", optarg, true, &grace_ms)) {
			json_object_set_new(params, "grace_ms", json_integer(grace_ms));
		} else if (option == STOP_CAPTURE) {
			*for_captures = true;
		} else if (option == STOP_DISCARD) {
			json_object_set_new(params, "discard", json_true());
		} else {
			*status = profctl_end(option);
			return false;
		}
	}
	bool fits = *for_captures ? json_object_get(params, "signal") == NULL &&
									json_object_get(params, "grace_ms") == NULL
							  : json_object_get(params, "discard") == NULL;
	if (optind == argc || !fits) {
		*status = profctl_usage(&stop_command);
		return false;
	}
	return true;
}

static int run_stop(struct profctl *profctl, int argc, char **argv)
{
	json_t *params = json_object();
	bool for_captures = false;
	int status = EXIT_SUCCESS;
	if (parse_stop(profctl, argc, argv, params, &for_captures, &status)) {
		struct each each = {.profctl = profctl,
			.method = for_captures ? "StopCapture" : "StopProcess",
			.id_name = for_captures ? "capture_id" : "build_id",
			.params = params,
			.find = for_captures ? ids_capture : ids_build,
			.print = for_captures ? print_capture_stopped : print_stopped};
		status = each_run(&each, argc - optind, argv + optind);
	}
	json_decref(params);
	return status;
}

/* --- signal --- */

static int run_signal(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	if (!profctl_operands(profctl, &signal_command, argc, argv, 2, argc, &status)) {
		return status;
	}
	json_t *params = json_pack("{s:o}", "signal", signal_value(argv[optind]));
	if (params == NULL) {
		return profctl_usage(&signal_command); /* not UTF-8 */
	}
	struct each each = {.profctl = profctl,
		.method = "SignalProcess",
		.id_name = "build_id",
		.params = params,
		.find = ids_build};
	status = each_run(&each, argc - optind - 1, argv + optind + 1);
	json_decref(params);
	return status;
}

const struct profctl_command ps_command = {
	.name = "ps",
	.synopsis = "",
	.about = "the programs that profd launched",
	.run = run_ps,
};

const struct profctl_command resume_command = {
	.name = "resume",
	.synopsis = "BUILD …",
	.about = "let held programs run",
	.run = run_resume,
};

const struct profctl_command stop_command = {
	.name = "stop",
	.synopsis = "[-s SIGNAL] [-g SECONDS] BUILD … | --capture [--discard] CAPTURE …",
	.about = "end programs with their process groups, or captures",
	.help = "  -s, --signal SIGNAL  what they are asked to end with; TERM\n"
			"  -g, --grace SECONDS  how long until their groups are killed; 5\n"
			"  -c, --capture        end captures; what was gathered is kept\n"
			"  -d, --discard        delete what was gathered\n",
	.short_options = "s:g:cd",
	.options = stop_options,
	.run = run_stop,
};

const struct profctl_command signal_command = {
	.name = "signal",
	.synopsis = "SIGNAL BUILD …",
	.about = "send a signal to programs: TERM, SIGTERM or 15",
	.run = run_signal,
};
