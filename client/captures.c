#include "client/captures.h"

#include <stdlib.h>
#include <string.h>

#include "client/advice.h"
#include "client/each.h"
#include "client/ids.h"
#include "client/listing.h"
#include "client/reply.h"
#include "client/report.h"
#include "protocol/limits.h"

/* Commands about captures: captures, show, wait, symbolize, label, pin, unpin, delete. */

#define COLOR_FAILED "\033[31m"
#define COLOR_END    "\033[m"

bool captures_has_failed(const json_t *record)
{
	return strcmp(reply_string(record, "state"), "failed") == 0;
}

static bool is_gpu(const json_t *record)
{
	return strcmp(reply_string(record, "kind"), "gpu") == 0;
}

/* --- captures --- */

static void print_line(const struct profctl *profctl, const json_t *record)
{
	bool is_red = captures_has_failed(record) && profctl_colors(profctl);
	const json_t *error = json_object_get(record, "error");
	reply_print(stdout, reply_string(record, "capture_id"), 24);
	fputs(is_red ? " " COLOR_FAILED : " ", stdout);
	reply_print(stdout, reply_string(record, "state"), 12);
	printf(
		"%s %9" JSON_INTEGER_FORMAT " ", is_red ? COLOR_END : "", reply_integer(record, "samples"));
	reply_print_time(stdout, reply_integer(record, "started_unix_us"), 20);
	putchar(' ');
	const char *path = reply_string(record, is_gpu(record) ? "trace_path" : "svg_path");
	reply_print(stdout, error != NULL ? reply_string(error, "message") : path, 0);
	if (reply_string(record, "label")[0] != '\0') {
		fputs(" [", stdout);
		reply_print(stdout, reply_string(record, "label"), 0);
		putchar(']');
	}
	putchar('\n');
}

static int run_captures(struct profctl *profctl, int argc, char **argv)
{
	const struct listing listing = {&captures_command, "ListCaptures", "captures",
		"CAPTURE                  STATE          SAMPLES STARTED              FLAME GRAPH, TRACE "
		"OR ERROR",
		print_line};
	return listing_run(&listing, profctl, argc, argv);
}

/* --- show --- */

static void print_error(const json_t *record)
{
	struct error err = {0};
	if (error_from_json(&err, json_object_get(record, "error"))) {
		const char *hint = err.hint[0] != '\0' ? err.hint : error_code_hint(err.code);
		fputs("error: ", stdout);
		reply_print(stdout, err.message, 0);
		fputs(" (", stdout);
		advice_print(stdout, hint);
		puts(")");
	}
}

static void print_head(const json_t *record)
{
	char build[LIMIT_ID_BYTES + 1];
	printf("capture %s: %s", reply_string(record, "capture_id"), reply_string(record, "state"));
	if (reply_string(record, "reason")[0] != '\0') {
		printf(" (%s)", reply_string(record, "reason"));
	}
	if (json_is_true(json_object_get(record, "pinned"))) {
		fputs(", pinned", stdout);
	}
	putchar('\n');
	if (reply_string(record, "label")[0] != '\0') {
		fputs("label: ", stdout);
		reply_print(stdout, reply_string(record, "label"), 0);
		putchar('\n');
	}
	fputs("started: ", stdout);
	reply_print_time(stdout, reply_integer(record, "started_unix_us"), 0);
	reply_id(json_object_get(record, "build_id"), build, sizeof(build));
	if (build[0] != '\0') {
		fputs(", build ", stdout);
		reply_print(stdout, build, 0);
	}
	printf(", process %" JSON_INTEGER_FORMAT "\ncommand:", reply_integer(record, "pid"));
	size_t index;
	const json_t *argument;
	json_array_foreach(json_object_get(record, "argv"), index, argument)
	{
		putchar(' ');
		reply_print(stdout, json_string_value(argument), 0);
	}
	putchar('\n');
}

static void print_samples(const json_t *record)
{
	const json_t *summary = json_object_get(record, "summary");
	printf("%" JSON_INTEGER_FORMAT " samples", reply_integer(record, "samples"));
	if (summary != NULL) {
		printf(" in %.2f s", (double)reply_integer(summary, "duration_ms") / 1000.0);
	}
	printf(", %" JSON_INTEGER_FORMAT " lost\n", reply_integer(record, "lost"));
}

void captures_print(const struct profctl *profctl, const json_t *record)
{
	if (profctl->json) {
		profctl_print_json(stdout, record);
		return;
	}
	print_head(record);
	if (!is_gpu(record)) {
		print_samples(record);
	} else if (!captures_has_failed(record)) {
		report_frames(stdout, record);
	}
	print_error(record);
	report_top(stdout, record);
	report_warnings(stdout, record);
	report_paths(stdout, record);
}

enum capture_option { CAPTURE_LAST = PROFCTL_OWN, CAPTURE_TIMEOUT };

static const struct option capture_options[] = {
	{"last", no_argument, NULL, CAPTURE_LAST}, PROFCTL_OPTIONS};
static const struct option wait_options[] = {{"last", no_argument, NULL, CAPTURE_LAST},
	{"timeout", required_argument, NULL, CAPTURE_TIMEOUT}, PROFCTL_OPTIONS};

/* What a command line that names one capture says. */
struct choice {
	bool last;
	json_int_t timeout_ms; /* -1: none */
};

/* operands: besides the capture. False: *status. */
static bool parse(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, int operands, struct choice *choice, int *status)
{
	int option = 0;
	*choice = (struct choice){.timeout_ms = -1};
	while ((option = profctl_option(profctl, command, argc, argv)) != -1) {
		if (option == CAPTURE_LAST) {
			choice->last = true;
		} else if (option != CAPTURE_TIMEOUT ||
				   !profctl_seconds("--timeout", optarg, true, &choice->timeout_ms)) {
			*status = profctl_end(option);
			return false;
		}
	}
	if (argc - optind != operands + !choice->last) {
		*status = profctl_usage(command);
		return false;
	}
	return true;
}

static json_t *find(const struct profctl *profctl, struct profclient *client,
	const struct choice *choice, char **argv, int *status)
{
	return choice->last ? ids_last_capture(profctl, client, status)
						: ids_capture(profctl, client, argv[optind], status);
}

static int run_show(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct choice choice;
	struct profclient *client = NULL;
	if (!parse(profctl, &show_command, argc, argv, 0, &choice, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *record = find(profctl, client, &choice, argv, &status);
	if (record != NULL) {
		captures_print(profctl, record);
	}
	json_decref(record);
	profclient_close(client);
	return status;
}

/* --- wait --- */

int captures_wait(
	const struct profctl *profctl, struct profclient *client, const char *id, json_int_t timeout_ms)
{
	int status = EXIT_SUCCESS;
	json_t *params = json_pack("{s:s}", "capture_id", id);
	if (timeout_ms >= 0) {
		json_object_set_new(params, "timeout_ms", json_integer(timeout_ms));
	}
	json_t *record = profctl_call(profctl, client, "WaitCapture", params, &status);
	if (record != NULL) {
		captures_print(profctl, record);
		status = captures_has_failed(record) ? EXIT_CAPTURE_FAILED : EXIT_SUCCESS;
	}
	json_decref(record);
	return status;
}

static int run_wait(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct choice choice;
	struct profclient *client = NULL;
	if (!parse(profctl, &wait_command, argc, argv, 0, &choice, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *record = find(profctl, client, &choice, argv, &status);
	if (record != NULL) {
		status =
			captures_wait(profctl, client, reply_string(record, "capture_id"), choice.timeout_ms);
	}
	json_decref(record);
	profclient_close(client);
	return status;
}

/* --- symbolize --- */

static int run_symbolize(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct choice choice;
	struct profclient *client = NULL;
	if (!parse(profctl, &symbolize_command, argc, argv, 0, &choice, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *record = find(profctl, client, &choice, argv, &status);
	if (record != NULL) {
		json_t *named = profctl_call(profctl, client, "SymbolizeCapture",
			json_pack("{s:O}", "capture_id", json_object_get(record, "capture_id")), &status);
		if (named != NULL) {
			captures_print(profctl, named);
		}
		json_decref(named);
	}
	json_decref(record);
	profclient_close(client);
	return status;
}

/* --- label, pin, unpin --- */

/* UpdateCapture with the change (taken), of the capture that argv names. */
static int update(struct profctl *profctl, const struct choice *choice, char **argv, json_t *change)
{
	int status = EXIT_SUCCESS;
	struct profclient *client = profctl_connect(profctl, true, &status);
	json_t *record = client != NULL ? find(profctl, client, choice, argv, &status) : NULL;
	if (record != NULL) {
		json_object_set(change, "capture_id", json_object_get(record, "capture_id"));
		json_t *result =
			profctl_call(profctl, client, "UpdateCapture", json_incref(change), &status);
		if (result != NULL && profctl->json) {
			profctl_print_json(stdout, result);
		}
		json_decref(result);
	}
	json_decref(change);
	json_decref(record);
	profclient_close(client);
	return status;
}

static int run_label(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	struct choice choice;
	if (!parse(profctl, &label_command, argc, argv, 1, &choice, &status)) {
		return status;
	}
	const char *label = argv[argc - 1];
	if (!profctl_text("the label", label)) {
		return EXIT_USAGE;
	}
	return update(profctl, &choice, argv, json_pack("{s:s}", "label", label));
}

static int pin(struct profctl *profctl, const struct profctl_command *command, int argc,
	char **argv, bool pinned)
{
	int status = EXIT_SUCCESS;
	struct choice choice;
	if (!parse(profctl, command, argc, argv, 0, &choice, &status)) {
		return status;
	}
	return update(profctl, &choice, argv, json_pack("{s:b}", "pinned", pinned));
}

static int run_pin(struct profctl *profctl, int argc, char **argv)
{
	return pin(profctl, &pin_command, argc, argv, true);
}

static int run_unpin(struct profctl *profctl, int argc, char **argv)
{
	return pin(profctl, &unpin_command, argc, argv, false);
}

/* --- delete --- */

static void print_left(const char *id, const json_t *result)
{
	if (reply_string(result, "left")[0] != '\0') {
		fprintf(stderr, "profctl: capture %s is deleted; files that are not its own stay in ", id);
		reply_print(stderr, reply_string(result, "left"), 0);
		fputc('\n', stderr);
	}
}

static int run_delete(struct profctl *profctl, int argc, char **argv)
{
	int status = EXIT_SUCCESS;
	if (!profctl_operands(profctl, &delete_command, argc, argv, 1, argc, &status)) {
		return status;
	}
	struct each each = {.profctl = profctl,
		.method = "DeleteCapture",
		.id_name = "capture_id",
		.find = ids_capture,
		.print = print_left};
	return each_run(&each, argc - optind, argv + optind);
}

#define LAST_HELP "  --last  the newest capture\n"

const struct profctl_command captures_command = {
	.name = "captures",
	.synopsis = "",
	.about = "the captures that are kept, and those that run",
	.run = run_captures,
};

const struct profctl_command show_command = {
	.name = "show",
	.synopsis = "CAPTURE | --last",
	.about = "what became of a capture: top functions, warnings, paths",
	.help = LAST_HELP,
	.options = capture_options,
	.run = run_show,
};

const struct profctl_command wait_command = {
	.name = "wait",
	.synopsis = "[--timeout SECONDS] CAPTURE | --last",
	.about = "wait for the end of a capture, and show it",
	.help = LAST_HELP "  --timeout SECONDS  give up after so long (exit status 7)\n",
	.options = wait_options,
	.run = run_wait,
};

const struct profctl_command symbolize_command = {
	.name = "symbolize",
	.synopsis = "CAPTURE | --last",
	.about = "make the names of a capture again, and its artifacts",
	.help = LAST_HELP,
	.options = capture_options,
	.run = run_symbolize,
};

const struct profctl_command label_command = {
	.name = "label",
	.synopsis = "CAPTURE|--last TEXT",
	.about = "label a capture",
	.help = LAST_HELP,
	.options = capture_options,
	.run = run_label,
};

const struct profctl_command pin_command = {
	.name = "pin",
	.synopsis = "CAPTURE | --last",
	.about = "keep a capture whatever its age",
	.help = LAST_HELP,
	.options = capture_options,
	.run = run_pin,
};

const struct profctl_command unpin_command = {
	.name = "unpin",
	.synopsis = "CAPTURE | --last",
	.about = "undo pin",
	.help = LAST_HELP,
	.options = capture_options,
	.run = run_unpin,
};

const struct profctl_command delete_command = {
	.name = "delete",
	.synopsis = "CAPTURE …",
	.about = "delete captures and their files",
	.run = run_delete,
};
