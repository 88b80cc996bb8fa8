/*
 * What a client may say: a real server on a real socket takes the input as one connection's bytes, and a handler checks the
 * parameters of each request that gets through against the tables of all methods. The first byte says what the input
 * is: bytes as they are; or a method and JSON text of its parameters; or, for a method, parameters by their number in its table and
 * values from a list, since a fuzzer does not guess names.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "commands/command.h"
#include "protocol/limits.h"
#include "server/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stage {
	uv_loop_t loop;
	struct log log;
	struct server *server;
	struct sockaddr_un address;
	size_t gone, requests;
};

/* Checked values are good values; an error says what is wrong, in ASCII. */
static void check_method(const struct command *command, const json_t *params)
{
	struct error err = {0};
	json_t *checked = command_check(command, params, &err);
	if (checked == NULL) {
		json_t *shown = error_to_json(&err);
		if (err.code == ERROR_NONE || err.message[0] == '\0' || shown == NULL) {
			abort();
		}
		for (const char *c = err.message; *c != '\0'; c++) {
			if (*c < ' ' || (*c & 0x80)) {
				abort();
			}
		}
		json_decref(shown);
		return;
	}
	json_t *again = command_check(command, checked, &err);
	if (again == NULL || !json_equal(again, checked)) {
		abort();
	}
	json_decref(again);
	json_decref(checked);
}

static void on_request(void *context, struct request *request, const char *method, json_t *params)
{
	((struct stage *)context)->requests++;
	const struct command *command = command_find(method);
	struct error err;
	for (size_t i = 0; commands[i] != NULL && command == NULL; i++) {
		check_method(commands[i], params);
	}
	if (command == NULL) {
		error_set(&err, ERROR_UNKNOWN_METHOD, "there is no such method");
		request_fail(request, &err);
	} else {
		check_method(command, params);
		request_reply(request, json_incref(params));
	}
}

static void on_gone(void *context, struct client *client)
{
	(void)client;
	((struct stage *)context)->gone++;
}

/* Nothing stays behind in the file system: the socket is then reached by its descriptor. */
static void hide_socket(struct stage *stage, const char *folder)
{
	char lock[sizeof(stage->address.sun_path) + 8];
	int place = open(stage->address.sun_path, O_PATH | O_CLOEXEC);
	snprintf(lock, sizeof(lock), "%s.lock", stage->address.sun_path);
	if (place < 0 || unlink(stage->address.sun_path) != 0 || unlink(lock) != 0 ||
		rmdir(folder) != 0) {
		abort();
	}
	snprintf(stage->address.sun_path, sizeof(stage->address.sun_path), "/proc/self/fd/%d", place);
}

/* One of ours: the server would make its own again when its name is hidden. */
static int listening_socket(const struct stage *stage)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&stage->address, sizeof(stage->address)) != 0 ||
		listen(fd, 16) != 0) {
		abort();
	}
	return fd;
}

static void open_stage(struct stage *stage)
{
	char folder[] = "/tmp/profd-fuzz-XXXXXX";
	struct error err;
	stage->log = (struct log){.level = LOG_ERROR, .fd = -1};
	stage->address.sun_family = AF_UNIX;
	if (mkdtemp(folder) == NULL || uv_loop_init(&stage->loop) != 0) {
		abort();
	}
	snprintf(stage->address.sun_path, sizeof(stage->address.sun_path), "%s/x.sock", folder);
	const struct server_options options = {
		.loop = &stage->loop,
		.activated_fd = listening_socket(stage),
		.log = &stage->log,
		.request = on_request,
		.client_gone = on_gone,
		.context = stage,
	};
	stage->server = server_open(&options, &err);
	if (stage->server == NULL) {
		abort();
	}
	hide_socket(stage, folder);
}

/* An object that is an event, or has an id and a result or an error. */
static void check_message(const char *text, size_t len)
{
	json_t *reply = json_loadb(text, len, JSON_ALLOW_NUL, NULL);
	const json_t *error = json_object_get(reply, "error");
	bool is_event = json_is_string(json_object_get(reply, "method")) &&
					json_is_object(json_object_get(reply, "params"));
	bool is_reply = json_object_get(reply, "id") != NULL &&
					(error == NULL) != (json_object_get(reply, "result") == NULL);
	if (is_event == is_reply) {
		abort();
	}
	json_decref(reply);
}

/* The server's first message, by lines or by headers, is checked. Returns its bytes with its frame. */
static size_t check_first(const char *text, size_t len)
{
	static const char header[] = "Content-Length: ";
	const char *end = memchr(text, '\n', len);
	if (end == NULL || (size_t)(end + 1 - text) > LIMIT_LINE_BYTES) {
		abort();
	}
	if (len < sizeof(header) || memcmp(text, header, sizeof(header) - 1) != 0) {
		check_message(text, (size_t)(end - text));
		return (size_t)(end + 1 - text);
	}
	size_t bytes = strtoul(text + sizeof(header) - 1, NULL, 10);
	size_t begin = (size_t)(end - text) + 3; /* "\n\r\n" */
	if (begin + bytes > len || memcmp(end - 1, "\r\n\r\n", 4) != 0) {
		abort();
	}
	check_message(text + begin, bytes);
	return begin + bytes;
}

static void check_replies(const char *text, size_t len)
{
	while (len > 0) {
		size_t bytes = check_first(text, len);
		text += bytes;
		len -= bytes;
	}
}

/* One connection, from its beginning until the server closes it because nothing more will come. */
static void converse(struct stage *stage, const char *text, size_t len)
{
	static char replies[1 << 20];
	size_t sent = 0, used = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&stage->address, sizeof(stage->address)) != 0) {
		abort();
	}
	for (ssize_t count = 1; count != 0;) {
		ssize_t more = sent < len ? send(fd, text + sent, len - sent, MSG_NOSIGNAL) : 0;
		sent += more > 0 ? (size_t)more : more < 0 && errno == EAGAIN ? 0 : len - sent;
		if (sent == len) {
			shutdown(fd, SHUT_WR);
		}
		uv_run(&stage->loop, UV_RUN_NOWAIT);
		count = recv(fd, replies + used, sizeof(replies) - used, 0);
		used += count > 0 ? (size_t)count : 0;
		if (used == sizeof(replies) || (count < 0 && errno != EAGAIN)) {
			break;
		}
	}
	if (used < sizeof(replies)) {
		check_replies(replies, used);
	}
	close(fd);
	while (server_clients(stage->server) > 0) {
		uv_run(&stage->loop, UV_RUN_NOWAIT);
	}
}

static const char *const values[] = {"null", "true", "false", "0", "-1", "1", "2.0", "1.5", "1e300",
	"9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "\"\"",
	"\"a\"", "\"/\"", "\"/a/b\"", "\"a\\u0000b\"", "\"\\ud83d\\ude00\"", "[]", "[\"a\"]",
	"[\"a\",1]", "[\"\"]", "{}", "{\"a\":1}", "{\"hz\":0}", "{\"a\":\"b\",\"c\":\"\"}", "\"TERM\"",
	"\"SIGKILL\"", "9", "65",
	/* longer than an id */
	("\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
	 "1234567890123456789012345678901234567890\"")};

#define VALUES (sizeof(values) / sizeof(values[0]))

static bool put_choice(struct buffer *out, const char *const *choices, uint8_t number)
{
	size_t count = 0;
	while (choices != NULL && choices[count] != NULL) {
		count++;
	}
	return count > 0 && buffer_printf(out, "\"%s\"", choices[number % count]);
}

static void put_value(struct buffer *out, const struct param *param, uint8_t choice)
{
	bool done = choice >= 0xf0   ? buffer_printf(out, "%lld", (long long)param->max + (choice & 1))
				: choice >= 0xe0 ? buffer_printf(out, "%lld", (long long)param->min - (choice & 1))
				: choice >= 0xb0 ? put_choice(out, param->choices, choice)
				: choice >= 0xa0 ? put_choice(out, param->later, choice)
				: choice >= 0x98 ? param->fallback != NULL && buffer_text(out, param->fallback)
								 : false;
	if (!done && !buffer_text(out, values[choice % VALUES])) {
		abort();
	}
}

static size_t count_rows(const struct param *table)
{
	size_t count = 0;
	while (table != NULL && table[count].name != NULL) {
		count++;
	}
	return count;
}

/* Pairs of bytes: a row, a value. A number above 200 goes into the row's own members, with the pairs up to the next such one. */
static void put_params(
	struct buffer *out, const struct param *table, const uint8_t *data, size_t size)
{
	const struct param *inner = NULL;
	const char *comma = "";
	bool good = buffer_byte(out, '{');
	for (size_t i = 0; good && i + 1 < size; i += 2) {
		size_t rows = count_rows(inner != NULL ? inner : table);
		if (data[i] > 200 && inner != NULL) {
			good = buffer_byte(out, '}');
			inner = NULL;
			comma = ",";
		} else if (rows > 0) {
			const struct param *param = (inner != NULL ? inner : table) + data[i] % rows;
			good = buffer_printf(out, "%s\"%s\":", comma, param->name);
			comma = ",";
			if (data[i] > 200 && param->members != NULL) {
				inner = param->members;
				good = good && buffer_byte(out, '{');
				comma = "";
			} else {
				put_value(out, param, data[i + 1]);
			}
		}
	}
	if (!good || !buffer_text(out, inner != NULL ? "}}" : "}")) {
		abort();
	}
}

static void compose(struct buffer *out, const uint8_t *data, size_t size)
{
	size_t count = 0;
	while (commands[count] != NULL) {
		count++;
	}
	const struct command *command = commands[data[1] % count];
	buffer_printf(out, "{\"id\":1,\"method\":\"%s\",\"params\":", command->name);
	if (data[0] % 3 == 1) {
		buffer_append(out, data + 2, size - 2);
	} else {
		put_params(out, command->params, data + 2, size - 2);
	}
	buffer_text(out, "}\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stage stage;
	if (stage.server == NULL) {
		open_stage(&stage);
	}
	if (size < 2) {
		return 0;
	}
	struct buffer text = {0};
	if (data[0] % 3 == 0) {
		buffer_append(&text, data + 1, size - 1);
	} else {
		compose(&text, data, size);
	}
	converse(&stage, (const char *)text.data, text.len);
	buffer_finish(&text);
	return 0;
}
