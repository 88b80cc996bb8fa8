#include <string.h>
#include <unistd.h>

#include "commands/rss.h"
#include "commands/methods.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/names.h"

static json_t *limits(void)
{
	static const struct {
		const char *name;
		json_int_t value;
	} rows[] = {
		{"request_bytes", LIMIT_REQUEST_BYTES},
		{"line_bytes", LIMIT_LINE_BYTES},
		{"json_depth", LIMIT_JSON_DEPTH},
		{"clients", LIMIT_CLIENTS},
		{"requests_in_flight", LIMIT_REQUESTS_IN_FLIGHT},
		{"builds", LIMIT_BUILDS},
		{"exited_builds", LIMIT_EXITED_BUILDS},
		{"running_captures", LIMIT_RUNNING_CAPTURES},
		{"id_bytes", LIMIT_ID_BYTES},
		{"label_bytes", LIMIT_LABEL_BYTES},
		{"arguments", LIMIT_ARGUMENTS},
		{"environment", LIMIT_ENVIRONMENT},
		{"argv_shown_bytes", LIMIT_ARGV_SHOWN_BYTES},
		{"output_event_bytes", LIMIT_OUTPUT_EVENT_BYTES},
		{"event_list", LIMIT_EVENT_LIST},
		{"queue_event_bytes", LIMIT_QUEUE_EVENT_BYTES},
		{"queue_hard_bytes", LIMIT_QUEUE_HARD_BYTES},
		{"queue_pause_bytes", LIMIT_QUEUE_PAUSE_BYTES},
		{"stall_ms", LIMIT_STALL_MS},
		{"header_bytes", LIMIT_HEADER_BYTES},
		{"subscriptions", LIMIT_SUBSCRIPTIONS},
		{"kept_events", LIMIT_KEPT_EVENTS},
		{"request_keys", LIMIT_REQUEST_KEYS},
		{"request_key_ms", LIMIT_REQUEST_KEY_MS},
		{"duration_ms", LIMIT_DURATION_MS},
		{"stack_frames", LIMIT_MAX_DEPTH},
	};
	json_t *object = json_object();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_object_set_new(object, rows[i].name, json_integer(rows[i].value));
	}
	return object;
}

static json_t *methods(void)
{
	json_t *names = json_array();
	for (size_t i = 0; commands[i] != NULL; i++) {
		if (commands[i]->run != NULL) {
			json_array_append_new(names, json_string(commands[i]->name));
		}
	}
	return names;
}

static json_t *capabilities(void)
{
	return json_pack("{s:[s],s:[ss],s:[s],s:[s],s:[ssss],s:[sss],s:[s],s:[],s:o}", "samplers",
		"perf", "unwinders", "dwarf", "fp", "modes", "cpu", "scopes", "process", "stdio", "pipe",
		"null", "file", "pty", "formats", "folded", "svg", "json", "gpu", "document", "exports",
		"methods", methods());
}

static void hello(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)params;
	request_reply(
		request, json_pack("{s:s,s:s,s:{s:i,s:i},s:s,s:I,s:o,s:o}", "server", NAME_SERVER,
					 "version", PROFD_VERSION, "protocol", "major", NAME_PROTOCOL_MAJOR, "minor",
					 NAME_PROTOCOL_MINOR, "instance_id", daemon->instance_id, "pid",
					 (json_int_t)getpid(), "capabilities", capabilities(), "limits", limits()));
}

static void ping(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)daemon;
	(void)params;
	request_reply(request, json_pack("{s:I}", "now_unix_us", (json_int_t)clock_unix_us()));
}

static void get_status(struct daemon *daemon, struct request *request, const json_t *params)
{
	(void)params;
	static const char *const states[] = {"running", "draining", "stopping", "stopping"};
	struct rss rss = {0};
	rss_read(&rss);
	uint64_t uptime_ms = (clock_monotonic_ns() - daemon->started_ns) / 1000000;
	request_reply(request,
		json_pack("{s:s,s:I,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "version", PROFD_VERSION, "pid",
			(json_int_t)getpid(), "instance_id", daemon->instance_id, "state",
			states[daemon->shutdown], "uptime_ms", (json_int_t)uptime_ms, "clients",
			(json_int_t)server_clients(daemon->server), "builds",
			(json_int_t)processes_alive(daemon->processes), "captures",
			(json_int_t)captures_running(daemon->captures), "rss_bytes",
			(json_int_t)rss.resident_bytes, "rss_anon_bytes", (json_int_t)rss.anonymous_bytes,
			"idle_exit_ms", (json_int_t)daemon->idle_exit_ms));
}

static void shut_down(struct daemon *daemon, struct request *request, const json_t *params)
{
	const char *mode = command_string(params, "mode", "stop");
	enum daemon_shutdown shutdown = strcmp(mode, "drain") == 0 ? DAEMON_DRAIN
									: strcmp(mode, "now") == 0 ? DAEMON_NOW
															   : DAEMON_STOP;
	request_reply(request, NULL);
	daemon->begin_shutdown(daemon, shutdown);
}

static const struct param hello_params[] = {
	{.name = "client",
		.type = PARAM_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_LABEL_BYTES,
		.about = "The client's name."},
	{.name = "version",
		.type = PARAM_STRING,
		.max = LIMIT_LABEL_BYTES,
		.about = "The client's version."},
	{.name = "protocol", .type = PARAM_OBJECT, .about = "The protocol {major, minor} it speaks."},
	{.name = NULL},
};

static const char *const shutdown_modes[] = {"drain", "stop", "now", NULL};

static const struct param shutdown_params[] = {
	{.name = "mode",
		.type = PARAM_ENUM,
		.choices = shutdown_modes,
		.fallback = "\"stop\"",
		.about = "Let captures end, end them within 10 seconds, or kill the children at once."},
	{.name = NULL},
};

static const char *const shutdown_events[] = {EVENT_DAEMON_STOPPING, NULL};

const struct command hello_command = {
	.name = "Hello",
	.params = hello_params,
	.run = hello,
	.about = "Says who answers, and what it can do.",
	.result = "server, version, protocol {major, minor}, instance_id, pid, "
			  "capabilities {samplers, unwinders, modes, scopes, stdio, formats, gpu, exports, "
			  "methods}, limits",
	.runs_while_stopping = true,
};

const struct command ping_command = {
	.name = "Ping",
	.run = ping,
	.about = "Answers.",
	.result = "now_unix_us",
	.runs_while_stopping = true,
};

const struct command get_status_command = {
	.name = "GetStatus",
	.run = get_status,
	.about = "How the daemon is.",
	.result = "version, pid, instance_id, state (running, draining, stopping), uptime_ms, clients, "
			  "builds, captures, rss_bytes, rss_anon_bytes, idle_exit_ms (0: it stays)",
	.runs_while_stopping = true,
};

const struct command shutdown_command = {
	.name = "Shutdown",
	.params = shutdown_params,
	.run = shut_down,
	.about = "Ends the daemon; answers at once.",
	.result = "",
	.events = shutdown_events,
	.runs_while_stopping = true,
};
