#include <string.h>

#include "client/ids.h"
#include "client/profctl.h"
#include "client/reply.h"
#include "protocol/limits.h"
#include "protocol/names.h"

/* Prints the daemon's events as they come. */

enum events_option { EVENTS_SINCE = PROFCTL_OWN };

static const struct option events_options[] = {{"build", required_argument, NULL, 'b'},
	{"capture", required_argument, NULL, 'c'}, {"count", required_argument, NULL, 'n'},
	{"since", required_argument, NULL, EVENTS_SINCE}, PROFCTL_OPTIONS};

struct wish {
	const char *build, *capture;
	json_int_t since; /* -1: from now on */
	json_int_t count; /* 0: without end */
};

/* "<seq> <name> <member>=<value> …". */
static void print_event(const struct profctl *profctl, const json_t *event)
{
	const json_t *params = profclient_event_params(event);
	const char *name = NULL;
	json_t *value = NULL;
	if (profctl->json) {
		profctl_print_json(stdout, event);
		return;
	}
	printf(
		"%" JSON_INTEGER_FORMAT " %s", reply_integer(params, "seq"), profclient_event_name(event));
	json_object_foreach((json_t *)params, name, value)
	{
		if (strcmp(name, "seq") == 0 || json_is_null(value)) {
			continue;
		}
		printf(" %s=", name);
		json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	}
	putchar('\n');
}

static bool set_subject(struct wish *wish, const struct profctl *profctl, struct profclient *client,
	json_t *params, int *status)
{
	if (wish->build != NULL) {
		/* As it is given: one that is launched later has no other name yet. */
		struct error err = {0};
		json_t *record = ids_try_build(client, wish->build, &err);
		if (record == NULL && !ids_is_possible(wish->build)) {
			*status = profctl_fail(profctl, &err);
			return false;
		}
		json_t *id = record != NULL ? json_incref(json_object_get(record, "build_id"))
									: json_string(wish->build);
		json_object_set_new(params, "build_id", id);
		json_decref(record);
	}
	json_t *record =
		wish->capture != NULL ? ids_capture(profctl, client, wish->capture, status) : NULL;
	if (record != NULL) {
		json_object_set(params, "capture_id", json_object_get(record, "capture_id"));
	}
	json_decref(record);
	return wish->capture == NULL || json_object_get(params, "capture_id") != NULL;
}

/* Takes params. */
static bool subscribe(
	const struct profctl *profctl, struct profclient *client, json_t *params, int *status)
{
	json_t *reply = profctl_call(profctl, client, "Subscribe", params, status);
	bool ok = reply != NULL;
	if (json_is_true(json_object_get(reply, "gap"))) {
		fputs("profctl: some of the events since then are not kept any more\n", stderr);
	}
	json_decref(reply);
	return ok;
}

static int follow(const struct profctl *profctl, struct profclient *client, json_int_t count)
{
	bool stopping = false;
	struct error err = {0};
	for (json_int_t seen = 0; count == 0 || seen < count; seen++) {
		json_t *event = NULL;
		if (profctl_event(client, -1, &event, &err) != PROFCLIENT_GOT) {
			return stopping ? EXIT_SUCCESS : profctl_fail(profctl, &err);
		}
		stopping = stopping || strcmp(profclient_event_name(event), EVENT_DAEMON_STOPPING) == 0;
		print_event(profctl, event);
		json_decref(event);
		if (fflush(stdout) != 0) {
			return EXIT_FAILED; /* finish() tells why */
		}
	}
	return EXIT_SUCCESS;
}

/* False: *status. */
static bool parse(struct wish *wish, struct profctl *profctl, int argc, char **argv, int *status)
{
	int option = 0;
	while ((option = profctl_option(profctl, &events_command, argc, argv)) != -1) {
		bool ok = true;
		if (option == 'b') {
			wish->build = optarg;
		} else if (option == 'c') {
			wish->capture = optarg;
		} else if (option == 'n') {
			ok = profctl_whole("-n", optarg, 1, LIMIT_INTEGER, &wish->count);
		} else if (option == EVENTS_SINCE) {
			ok = profctl_whole("--since", optarg, 0, LIMIT_INTEGER, &wish->since);
		} else {
			ok = false;
		}
		if (!ok) {
			*status = profctl_end(option);
			return false;
		}
	}
	if (optind != argc) {
		*status = profctl_usage(&events_command);
		return false;
	}
	return true;
}

static int run_events(struct profctl *profctl, int argc, char **argv)
{
	struct wish wish = {.since = -1};
	int status = EXIT_SUCCESS;
	struct profclient *client = NULL;
	if (!parse(&wish, profctl, argc, argv, &status) ||
		(client = profctl_connect(profctl, true, &status)) == NULL) {
		return status;
	}
	json_t *params = json_object();
	if (wish.since >= 0) {
		json_object_set_new(params, "since_seq", json_integer(wish.since));
		json_object_set(
			params, "instance_id", json_object_get(profclient_hello(client), "instance_id"));
	}
	if (set_subject(&wish, profctl, client, params, &status) &&
		subscribe(profctl, client, json_incref(params), &status)) {
		status = follow(profctl, client, wish.count);
	}
	json_decref(params);
	profclient_close(client);
	return status;
}

const struct profctl_command events_command = {
	.name = "events",
	.synopsis = "[-b BUILD] [-c CAPTURE] [--since SEQ] [-n COUNT]",
	.about = "print what happens, an event a line, until the daemon ends",
	.help = "  -b, --build BUILD      only of this build, also one that is launched later\n"
			"  -c, --capture CAPTURE  only of this capture; with -b of either\n"
			"      --since SEQ        first what is kept of the events after number SEQ\n"
			"  -n, --count COUNT      end after so many\n",
	.short_options = "b:c:n:",
	.options = events_options,
	.run = run_events,
};
