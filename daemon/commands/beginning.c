#include "commands/beginning.h"

#include <string.h>

#include "commands/build.h"
#include "commands/lease.h"

const char *const beginning_client_exits[] = {"continue", "stop", NULL};

struct capture *beginning_tie(struct daemon *daemon, const json_t *params, struct capture *capture,
	struct process *process, struct client *client, struct error *err)
{
	bool stops = strcmp(command_string(params, "on_client_exit", "continue"), "stop") == 0;
	if (capture == NULL) {
		return NULL;
	}
	if (!lease_create(daemon, capture, stops ? client : NULL)) {
		capture_stop(capture, "stopped", true);
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	if (process != NULL) {
		build_add_capture(daemon, process, capture_id(capture));
	}
	if (stops && client == NULL) {
		capture_stop(capture, "client_exited", false);
	}
	return capture;
}

void beginning_answer(struct daemon *daemon, struct request *request, const json_t *params,
	struct capture *capture, const struct error *err)
{
	struct client *client = request_client(request);
	if (capture == NULL) {
		request_fail(request, err);
		return;
	}
	request_reply(request, capture_effective(capture));
	if (client != NULL && command_boolean(params, "subscribe", true)) {
		struct events_subject subject = {.capture_id = capture_id(capture)};
		events_subscribe(daemon->events, client, &subject);
	}
}
