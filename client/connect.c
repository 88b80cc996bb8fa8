#include "client/connection.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/start.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "protocol/peer.h"
#include "protocol/socket_path.h"

#define TIMEOUT_MS_DEFAULT 5000
#define IDLE_EXIT_DEFAULT  600

/* --- errors --- */

bool connection_tell(struct profclient_error *told, const struct error *err)
{
	if (told != NULL) {
		const char *hint = err->hint[0] != '\0' ? err->hint : error_code_hint(err->code);
		memset(told, 0, sizeof(*told));
		snprintf(told->code, sizeof(told->code), "%s", error_code_name(err->code));
		memcpy(told->detail, err->detail, sizeof(told->detail));
		memcpy(told->message, err->message, sizeof(told->message));
		snprintf(told->hint, sizeof(told->hint), "%s", hint);
		told->retryable = error_code_retryable(err->code);
	}
	return false;
}

_Static_assert(sizeof(((struct profclient_error *)0)->message) == ERROR_MESSAGE_BYTES,
	"a message fits the library's error");
_Static_assert(sizeof(((struct profclient_error *)0)->detail) == ERROR_DETAIL_BYTES &&
				   sizeof(((struct profclient_error *)0)->hint) == ERROR_HINT_BYTES,
	"detail and hint fit the library's error");

/* --- the connection --- */

static bool copy_options(
	struct profclient_options *mine, const struct profclient_options *given, struct error *err)
{
	*mine = (struct profclient_options){0};
	if (given != NULL) {
		if (given->size == 0) {
			return error_set(
				err, ERROR_BAD_PARAMS, "profclient_options.size is 0, not the size of the struct");
		}
		memcpy(mine, given, given->size < sizeof(*mine) ? given->size : sizeof(*mine));
	}
	mine->client = mine->client != NULL ? mine->client : "libprofclient";
	mine->version = mine->version != NULL ? mine->version : PROFD_VERSION;
	mine->timeout_ms = mine->timeout_ms > 0 ? mine->timeout_ms : TIMEOUT_MS_DEFAULT;
	mine->idle_exit_s = mine->idle_exit_s == 0  ? IDLE_EXIT_DEFAULT
						: mine->idle_exit_s < 0 ? 0
												: mine->idle_exit_s;
	return true;
}

static int open_socket(
	const struct profclient_options *options, const char *path, struct error *err)
{
	int fd = socket_path_connect(path, err);
	if (fd < 0 && options->start && strcmp(err->detail, "not_running") == 0 &&
		start_daemon(path, options->idle_exit_s, err)) {
		fd = socket_path_connect(path, err);
	}
	if (fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		error_errno(err, "make the connection non-blocking");
		close(fd);
		fd = -1;
	}
	return fd;
}

static struct profclient *create(int fd)
{
	struct profclient *client = calloc(1, sizeof(*client));
	if (client == NULL) {
		close(fd);
		return NULL;
	}
	client->fd = fd;
	framing_init(&client->framing, LIMIT_REQUEST_BYTES);
	inbox_init(&client->inbox);
	return client;
}

static bool hung(const struct profclient *client, const char *path, int timeout_ms,
	struct profclient_error *told)
{
	struct error err = {0};
	struct peer peer = {0};
	error_set(&err, ERROR_TIMEOUT,
		"profd at %s takes connections but did not answer Hello in %d ms", path, timeout_ms);
	if (peer_read(client->fd, &peer, NULL)) {
		error_hint(&err, "wait for it; if it is stopped: kill -CONT %d; to end it: kill -KILL %d",
			(int)peer.pid, (int)peer.pid);
	}
	error_detail(&err, "hung");
	return connection_tell(told, &err);
}

static bool check_version(
	const struct profclient *client, const char *path, struct profclient_error *told)
{
	const json_t *protocol = json_object_get(client->hello, "protocol");
	json_int_t major = json_integer_value(json_object_get(protocol, "major"));
	if (major == NAME_PROTOCOL_MAJOR) {
		return true;
	}
	const char *version = json_string_value(json_object_get(client->hello, "version"));
	struct error err = {0};
	error_set(&err, ERROR_UNSUPPORTED,
		"profd %s at %s speaks version %" JSON_INTEGER_FORMAT
		" of the protocol, this client (" PROFD_VERSION ") version %d",
		version != NULL ? version : "of an unknown version", path, major, NAME_PROTOCOL_MAJOR);
	error_hint(&err, "profctl daemon stop ends it; the next client starts the one that fits");
	error_detail(&err, "version_mismatch");
	return connection_tell(told, &err);
}

static bool say_hello(struct profclient *client, const char *path,
	const struct profclient_options *options, struct profclient_error *told)
{
	json_t *params = json_pack("{s:s, s:s, s:{s:i, s:i}}", "client", options->client, "version",
		options->version, "protocol", "major", NAME_PROTOCOL_MAJOR, "minor", NAME_PROTOCOL_MINOR);
	struct error err = {0};
	if (params == NULL) {
		error_set(&err, ERROR_BAD_PARAMS, "the client's name or version is not UTF-8");
		return connection_tell(told, &err);
	}
	int64_t id = profclient_send(client, "Hello", params, told);
	if (id == 0) {
		return false;
	}
	switch (profclient_reply(client, id, options->timeout_ms, &client->hello, told)) {
	case PROFCLIENT_GOT:
		return options->any_protocol || check_version(client, path, told);
	case PROFCLIENT_NOTHING:
		return hung(client, path, options->timeout_ms, told);
	default:
		return false;
	}
}

struct profclient *profclient_connect(
	const struct profclient_options *given, struct profclient_error *told)
{
	struct error err = {0};
	struct profclient_options options;
	char path[SOCKET_PATH_BYTES];
	int fd = -1;
	if (!copy_options(&options, given, &err) ||
		!socket_path_find(options.socket_path, path, &err) ||
		(fd = open_socket(&options, path, &err)) < 0) {
		connection_tell(told, &err);
		return NULL;
	}
	struct profclient *client = create(fd);
	if (client == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory for a connection");
		connection_tell(told, &err);
		return NULL;
	}
	if (!say_hello(client, path, &options, told)) {
		profclient_close(client);
		return NULL;
	}
	return client;
}

void profclient_close(struct profclient *client)
{
	if (client == NULL) {
		return;
	}
	close(client->fd);
	framing_finish(&client->framing);
	inbox_finish(&client->inbox);
	json_decref(client->hello);
	free(client->unsent);
	free(client);
}

bool profclient_socket_path(const struct profclient_options *given, char *path, size_t path_bytes,
	struct profclient_error *told)
{
	struct error err = {0};
	struct profclient_options options;
	char found[SOCKET_PATH_BYTES];
	if (!copy_options(&options, given, &err) ||
		!socket_path_find(options.socket_path, found, &err)) {
		return connection_tell(told, &err);
	}
	size_t len = strlen(found);
	if (len >= path_bytes) {
		error_set(&err, ERROR_BAD_PARAMS, "the socket path %s has %zu bytes, there is room for %zu",
			found, len, path_bytes);
		return connection_tell(told, &err);
	}
	memcpy(path, found, len + 1);
	return true;
}
