#include "client/profctl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/reply.h"

static void print_time(json_int_t unix_us)
{
	time_t seconds = (time_t)(unix_us / 1000000);
	struct tm local;
	char text[32] = "-";
	if (unix_us > 0 && localtime_r(&seconds, &local) != NULL) {
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
	}
	printf("%-20s", text);
}

static void print_id(const json_t *id, int width)
{
	char text[32];
	if (json_is_integer(id)) {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(id));
		reply_print(stdout, text, width);
	} else {
		reply_print(stdout, json_is_string(id) ? json_string_value(id) : "-", width);
	}
}

static void print_process(const json_t *record)
{
	print_id(json_object_get(record, "build_id"), 12);
	printf(" %8" JSON_INTEGER_FORMAT " ", reply_integer(record, "pid"));
	char state[48];
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
	print_time(reply_integer(record, "started_unix_us"));
	size_t index;
	const json_t *argument;
	json_array_foreach(json_object_get(record, "argv"), index, argument)
	{
		putchar(' ');
		reply_print(stdout, json_string_value(argument), 0);
	}
	putchar('\n');
}

static void print_capture(const json_t *record)
{
	reply_print(stdout, reply_string(record, "capture_id"), 24);
	putchar(' ');
	reply_print(stdout, reply_string(record, "state"), 12);
	printf(" %9" JSON_INTEGER_FORMAT " ", reply_integer(record, "samples"));
	print_time(reply_integer(record, "started_unix_us"));
	putchar(' ');
	const char *place = reply_string(record, "svg_path");
	const json_t *error = json_object_get(record, "error");
	reply_print(stdout, error != NULL ? reply_string(error, "message") : place, 0);
	putchar('\n');
}

/* Calls a list method page by page. */
static int list(const struct profctl *profctl, const char *method, const char *member,
	const char *head, void (*print)(const json_t *record))
{
	struct profclient *client = profctl_connect(profctl, true);
	if (client == NULL) {
		return EXIT_UNREACHABLE;
	}
	struct error err = {0};
	json_t *cursor = NULL;
	int status = EXIT_SUCCESS;
	if (!profctl->json) {
		puts(head);
	}
	do {
		json_t *params = json_object();
		if (cursor != NULL) {
			json_object_set_new(params, "cursor", cursor);
		}
		json_t *page = profclient_call(client, method, params, &err);
		if (page == NULL) {
			profctl_complain(&err);
			status = EXIT_FAILED;
			break;
		}
		size_t index;
		const json_t *record;
		json_array_foreach(json_object_get(page, member), index, record)
		{
			if (profctl->json) {
				profctl_print_json(stdout, record);
			} else {
				print(record);
			}
		}
		cursor = json_incref(json_object_get(page, "next_cursor"));
		json_decref(page);
	} while (cursor != NULL && !json_is_null(cursor));
	profclient_close(client);
	return status;
}

static int run_ps(const struct profctl *profctl, int argc, char **argv)
{
	(void)argv;
	if (argc != 1) {
		return profctl_usage(&ps_command);
	}
	return list(profctl, "ListProcesses", "processes",
		"BUILD             PID STATE      STARTED              COMMAND", print_process);
}

static int run_captures(const struct profctl *profctl, int argc, char **argv)
{
	(void)argv;
	if (argc != 1) {
		return profctl_usage(&captures_command);
	}
	return list(profctl, "ListCaptures", "captures",
		"CAPTURE                  STATE          SAMPLES STARTED              FLAME GRAPH OR ERROR",
		print_capture);
}

static int run_status(const struct profctl *profctl, int argc, char **argv)
{
	(void)argv;
	if (argc != 1) {
		return profctl_usage(&status_command);
	}
	struct profclient *client = profctl_connect(profctl, false);
	if (client == NULL) {
		return EXIT_UNREACHABLE;
	}
	struct error err = {0};
	json_t *status = profclient_call(client, "GetStatus", NULL, &err);
	profclient_close(client);
	if (status == NULL) {
		profctl_complain(&err);
		return EXIT_FAILED;
	}
	if (profctl->json) {
		profctl_print_json(stdout, status);
	} else {
		json_int_t seconds = reply_integer(status, "uptime_ms") / 1000;
		printf("profd %s, process %" JSON_INTEGER_FORMAT ", up %" JSON_INTEGER_FORMAT " s\n",
			reply_string(status, "version"), reply_integer(status, "pid"), seconds);
		printf("%" JSON_INTEGER_FORMAT " clients, %" JSON_INTEGER_FORMAT
			   " builds, %" JSON_INTEGER_FORMAT " captures running, %.1f MiB resident\n",
			reply_integer(status, "clients"), reply_integer(status, "builds"),
			reply_integer(status, "captures"),
			(double)reply_integer(status, "rss_bytes") / 1048576.0);
	}
	json_decref(status);
	return EXIT_SUCCESS;
}

const struct profctl_command ps_command = {
	.name = "ps",
	.synopsis = "",
	.about = "the programs that profd launched",
	.run = run_ps,
};

const struct profctl_command captures_command = {
	.name = "captures",
	.synopsis = "",
	.about = "the captures that are kept, and those that run",
	.run = run_captures,
};

const struct profctl_command status_command = {
	.name = "status",
	.synopsis = "",
	.about = "how the daemon does; starts none",
	.run = run_status,
};
