#include <string.h>

#include "client/follow.h"
#include "client/ids.h"
#include "client/profctl.h"
#include "client/reply.h"

enum output_option { OUTPUT_STDERR = PROFCTL_OWN };

static const struct option output_options[] = {{"follow", no_argument, NULL, 'f'},
	{"stderr", no_argument, NULL, OUTPUT_STDERR}, PROFCTL_OPTIONS};

static bool has_exited(const json_t *record)
{
	return strcmp(reply_string(record, "state"), "exited") == 0;
}

/* What is kept, and when it is followed all that comes. */
static bool show(struct follow *follow, const json_t *record, bool follows, struct error *err)
{
	if (!follows || has_exited(record)) {
		return follow_read(follow, err);
	}
	json_t *subscribed = profctl_try(follow->client, "Subscribe",
		json_pack("{s:O, s:[s]}", "build_id", follow->build_id, "events", "ProcessExited"), err);
	if (subscribed == NULL || !follow_read(follow, err)) {
		json_decref(subscribed);
		return false;
	}
	/* It may have ended between the look at it and the subscription. */
	const json_t *now =
		json_array_get(json_object_get(json_object_get(subscribed, "snapshot"), "processes"), 0);
	bool ok = has_exited(now) ? follow_read(follow, err) : follow_run(follow, err);
	json_decref(subscribed);
	return ok;
}

static int run_output(struct profctl *profctl, int argc, char **argv)
{
	bool follows = false, is_stderr = false;
	int option = 0, status = EXIT_SUCCESS;
	while ((option = profctl_option(profctl, &output_command, argc, argv)) != -1) {
		if (option != 'f' && option != OUTPUT_STDERR) {
			return profctl_end(option);
		}
		follows = follows || option == 'f';
		is_stderr = is_stderr || option == OUTPUT_STDERR;
	}
	if (argc - optind != 1) {
		return profctl_usage(&output_command);
	}
	struct profclient *client = profctl_connect(profctl, true, &status);
	json_t *record = client != NULL ? ids_build(profctl, client, argv[optind], &status) : NULL;
	if (record != NULL) {
		struct follow follow;
		struct error err = {0};
		follow_init(&follow, profctl, client, json_object_get(record, "build_id"));
		follow.streams[is_stderr ? 0 : 1].fd = -1;
		follow.streams[1].fd =
			is_stderr ? 1 : -1; /* what was asked for goes to our standard output */
		/* Events of a program that writes faster than we do would only pile up: what is kept is asked for. */
		follow.polls = true;
		if (!show(&follow, record, follows, &err)) {
			status = profctl_fail(profctl, &err);
		}
		follow_finish(&follow);
	}
	json_decref(record);
	profclient_close(client);
	return status;
}

const struct profctl_command output_command = {
	.name = "output",
	.synopsis = "[-f] [--stderr] BUILD",
	.about = "what a program has written",
	.help = "  -f, --follow  and what it goes on to write, until it ends\n"
			"      --stderr  its standard error in place of its standard output\n",
	.short_options = "f",
	.options = output_options,
	.run = run_output,
};
