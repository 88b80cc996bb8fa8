#include "client/profctl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/socket_path.h"

#define QUIET_MS  5000 /* so long nothing is asked while a reply is waited for */
#define ANSWER_MS 5000 /* so long a Ping may take */
#define LOG_LINES 10
#define LOG_BYTES 8192

/* The library's error as ours. A code of a newer daemon, which we do not know, is internal. */
static void take_error(struct error *err, const struct profclient_error *told)
{
	enum error_code code = error_code_from_name(told->code);
	error_set(err, code != ERROR_NONE ? code : ERROR_INTERNAL, "%s", told->message);
	error_detail(err, told->detail);
	error_hint(err, "%s", told->hint);
}

static struct profclient *open_client(
	const struct profctl *profctl, struct profclient_options *options, struct error *err)
{
	struct profclient_error told = {0};
	options->size = sizeof(*options);
	options->socket_path = profctl->socket_given;
	options->client = "profctl";
	struct profclient *client = profclient_connect(options, &told);
	if (client == NULL) {
		take_error(err, &told);
	}
	return client;
}

struct profclient *profctl_try_connect(
	const struct profctl *profctl, bool may_start, struct error *err)
{
	struct profclient_options options = {
		.start = may_start && !profctl->no_start, .idle_exit_s = profctl->idle_exit_s};
	return open_client(profctl, &options, err);
}

struct profclient *profctl_connect_any(const struct profctl *profctl, struct error *err)
{
	struct profclient_options options = {.any_protocol = true};
	return open_client(profctl, &options, err);
}

/* The log's size before a daemon is started; 0 without one. */
static long log_end(const struct profctl *profctl, char path[SOCKET_PATH_BYTES + 8])
{
	struct profclient_options options = {
		.size = sizeof(options), .socket_path = profctl->socket_given};
	struct stat info;
	path[0] = '\0';
	if (!profclient_socket_path(&options, path, SOCKET_PATH_BYTES, NULL)) {
		return 0;
	}
	strcat(path, ".log");
	return lstat(path, &info) == 0 ? (long)info.st_size : 0;
}

/* The last lines that the daemon we started has logged, to stderr. */
static void show_log(const char *path, long from)
{
	char text[LOG_BYTES + 1];
	FILE *log = fopen(path, "re");
	if (log == NULL) {
		return;
	}
	fseek(log, 0, SEEK_END);
	long end = ftell(log);
	from = from > end ? 0 : from; /* it began anew */
	fseek(log, end - from > LOG_BYTES ? end - LOG_BYTES : from, SEEK_SET);
	text[fread(text, 1, LOG_BYTES, log)] = '\0';
	fclose(log);
	char *line = text + strlen(text);
	for (int lines = 0; line > text; line--) {
		lines += line[-1] == '\n' && line[0] != '\0';
		if (lines == LOG_LINES) {
			break;
		}
	}
	for (char *byte = line; *byte != '\0'; byte++) {
		if ((unsigned char)*byte < 0x20 && *byte != '\n') {
			*byte = '?';
		}
	}
	fputs(line, stderr);
}

struct profclient *profctl_connect(const struct profctl *profctl, bool may_start, int *status)
{
	struct error err = {0};
	char log[SOCKET_PATH_BYTES + 8];
	long from = log_end(profctl, log);
	struct profclient *client = profctl_try_connect(profctl, may_start, &err);
	if (client == NULL) {
		*status = profctl_fail(profctl, &err);
		if (strcmp(err.detail, "start_failed") == 0) {
			show_log(log, from);
		}
	}
	return client;
}

static bool hung(const struct profclient *client, struct error *err)
{
	json_int_t pid = json_integer_value(json_object_get(profclient_hello(client), "pid"));
	error_set(err, ERROR_TIMEOUT,
		"profd (process %" JSON_INTEGER_FORMAT ") does not answer any more: not even Ping in %d ms",
		pid, ANSWER_MS);
	error_hint(err,
		"if it is stopped: kill -CONT %" JSON_INTEGER_FORMAT
		"; to end it: kill -KILL %" JSON_INTEGER_FORMAT,
		pid, pid);
	return error_detail(err, "hung");
}

/* A method may take its time, but the daemon always has some for a Ping. NULL: err. */
static json_t *await(struct profclient *client, int64_t id, struct error *err)
{
	struct profclient_error told = {0};
	for (;;) {
		json_t *result = NULL, *alive = NULL;
		enum profclient_got got = profclient_reply(client, id, QUIET_MS, &result, &told);
		if (got == PROFCLIENT_GOT) {
			return result;
		}
		int64_t ping = got == PROFCLIENT_NOTHING ? profclient_send(client, "Ping", NULL, &told) : 0;
		if (ping != 0) {
			got = profclient_reply(client, ping, ANSWER_MS, &alive, &told);
		}
		json_decref(alive);
		if (ping != 0 && got == PROFCLIENT_NOTHING) {
			hung(client, err);
			return NULL;
		}
		if (ping == 0 || got == PROFCLIENT_FAILED) {
			take_error(err, &told);
			return NULL;
		}
	}
}

json_t *profctl_try(
	struct profclient *client, const char *method, json_t *params, struct error *err)
{
	int64_t id = profctl_send(client, method, params, err);
	return id != 0 ? await(client, id, err) : NULL;
}

json_t *profctl_call(const struct profctl *profctl, struct profclient *client, const char *method,
	json_t *params, int *status)
{
	struct error err = {0};
	json_t *result = profctl_try(client, method, params, &err);
	if (result == NULL) {
		*status = profctl_fail(profctl, &err);
	}
	return result;
}

int64_t profctl_send(
	struct profclient *client, const char *method, json_t *params, struct error *err)
{
	struct profclient_error told = {0};
	int64_t id = profclient_send(client, method, params, &told);
	if (id == 0) {
		take_error(err, &told);
	}
	return id;
}

enum profclient_got profctl_reply(
	struct profclient *client, int64_t id, int timeout_ms, json_t **result, struct error *err)
{
	struct profclient_error told = {0};
	enum profclient_got got = profclient_reply(client, id, timeout_ms, result, &told);
	if (got == PROFCLIENT_FAILED) {
		take_error(err, &told);
	}
	return got;
}

enum profclient_got profctl_event(
	struct profclient *client, int timeout_ms, json_t **event, struct error *err)
{
	struct profclient_error told = {0};
	enum profclient_got got = profclient_event(client, timeout_ms, event, &told);
	if (got == PROFCLIENT_FAILED) {
		take_error(err, &told);
	}
	return got;
}

bool profctl_pages(struct profclient *client, const char *method, const char *member,
	bool (*visit)(void *context, const json_t *record), void *context, struct error *err)
{
	json_t *cursor = NULL;
	bool goes_on = true;
	do {
		json_t *page = profctl_try(client, method, json_pack("{s:o*}", "cursor", cursor), err);
		if (page == NULL) {
			return false;
		}
		size_t index;
		const json_t *record;
		json_array_foreach(json_object_get(page, member), index, record)
		{
			goes_on = goes_on && visit(context, record);
		}
		cursor = json_incref(json_object_get(page, "next_cursor"));
		json_decref(page);
		if (json_is_null(cursor)) {
			cursor = NULL;
		}
	} while (cursor != NULL && goes_on);
	json_decref(cursor);
	return true;
}
