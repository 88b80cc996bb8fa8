#include "support/server_dialogue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/limits.h"

/* The loop's clock can be set forward, so that no test waits for half a minute. */
uint64_t skipped_s;

int clock_gettime(clockid_t clock, struct timespec *now);
int clock_gettime(clockid_t clock, struct timespec *now)
{
	long rc = syscall(SYS_clock_gettime, clock, now);
	now->tv_sec += (time_t)skipped_s;
	return (int)rc;
}

uint64_t real_ms(void)
{
	struct timespec now;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void on_gone(struct request *request, void *context)
{
	struct fixture *fixture = context;
	assert_null(request_client(request));
	fixture->gone_requests++;
	for (size_t i = 0; i < fixture->kept_count; i++) {
		if (fixture->kept[i] == request) {
			fixture->kept[i] = NULL;
		}
	}
	request_drop(request);
}

static void on_request(void *context, struct request *request, const char *method, json_t *params)
{
	struct fixture *fixture = context;
	fixture->calls++;
	if (strcmp(method, "Echo") == 0) {
		request_reply(request, json_pack("{s:O?}", "params", params));
	} else if (strcmp(method, "Empty") == 0) {
		request_reply(request, NULL);
	} else if (strcmp(method, "Later") == 0) {
		request_on_gone(request, on_gone, fixture);
		assert_true(fixture->kept_count < 2 * LIMIT_REQUESTS_IN_FLIGHT);
		fixture->kept[fixture->kept_count++] = request;
	} else if (strcmp(method, "Watch") == 0) {
		/* Replies first: a half-closed client must not be closed between the two. */
		struct client *client = request_client(request);
		struct events_subject subject = {
			.build_key = json_string_value(json_object_get(params, "build")),
			.capture_id = json_string_value(json_object_get(params, "capture"))};
		request_reply(request, NULL);
		assert_true(events_subscribe(server_events(fixture->server), client, &subject));
	} else if (strcmp(method, "Long") == 0) {
		size_t len = (size_t)json_integer_value(json_object_get(params, "len"));
		char *text = malloc(len);
		memset(text, 'x', len);
		request_reply(request, json_pack("{s:o}", "text", json_stringn(text, len)));
		free(text);
	} else {
		struct error err;
		error_set(&err, ERROR_UNKNOWN_METHOD, "no method %s", method);
		request_fail(request, &err);
	}
}

static void on_client_gone(void *context, struct client *client)
{
	(void)client;
	((struct fixture *)context)->gone_clients++;
}

struct server *open_server(struct fixture *fixture, struct error *err)
{
	struct server_options options = {
		.loop = &fixture->loop,
		.socket_path = fixture->path,
		.log = &fixture->log,
		.request = on_request,
		.client_gone = on_client_gone,
		.context = fixture,
	};
	return server_open(&options, err);
}

int dialogue_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&fixture->loop);
	fixture->log = (struct log){.level = LOG_ERROR, .fd = STDERR_FILENO};
	strcpy(fixture->folder, "/tmp/profd-server-XXXXXX");
	if (mkdtemp(fixture->folder) == NULL) {
		return -1;
	}
	snprintf(fixture->path, sizeof(fixture->path), "%s/x.sock", fixture->folder);
	struct error err;
	fixture->server = open_server(fixture, &err);
	*state = fixture;
	return fixture->server != NULL ? 0 : -1;
}

int dialogue_teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[128];
	server_destroy(fixture->server);
	int rc = uv_loop_close(&fixture->loop);
	snprintf(command, sizeof(command), "rm -rf %s", fixture->folder);
	rc |= system(command);
	free(fixture);
	return rc;
}

void turn(struct fixture *fixture)
{
	for (int i = 0; i < 4; i++) {
		uv_run(&fixture->loop, UV_RUN_NOWAIT);
	}
}

int connect_to(const struct fixture *fixture)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, fixture->path, strlen(fixture->path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

struct peer_end *dial(struct fixture *fixture)
{
	struct peer_end *end = calloc(1, sizeof(*end));
	size_t before = server_clients(fixture->server);
	end->fd = connect_to(fixture);
	WAIT_FOR(fixture, server_clients(fixture->server) == before + 1);
	return end;
}

void hang_up(struct peer_end *end)
{
	close(end->fd);
	free(end);
}

static void receive(struct peer_end *end)
{
	ssize_t len = recv(end->fd, end->bytes + end->used, sizeof(end->bytes) - end->used, 0);
	if (len > 0) {
		end->used += (size_t)len;
	} else if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
		end->ended = true;
	}
}

void say_bytes(struct fixture *fixture, struct peer_end *end, const char *bytes, size_t len)
{
	for (size_t sent = 0; sent < len;) {
		ssize_t count = send(end->fd, bytes + sent, len - sent, MSG_NOSIGNAL);
		if (count > 0) {
			sent += (size_t)count;
		} else {
			assert_int_equal(errno, EAGAIN);
			turn(fixture);
		}
	}
}

void say(struct fixture *fixture, struct peer_end *end, const char *line)
{
	say_bytes(fixture, end, line, strlen(line));
	say_bytes(fixture, end, "\n", 1);
}

/* The next line as text; NULL at the end of the stream. Owned. */
char *hear_text(struct fixture *fixture, struct peer_end *end)
{
	uint64_t deadline = real_ms() + WAIT_MS;
	char *feed = NULL;
	while ((feed = memchr(end->bytes, '\n', end->used)) == NULL && !end->ended) {
		assert_true(real_ms() < deadline);
		turn(fixture);
		receive(end);
	}
	if (feed == NULL) {
		return NULL;
	}
	size_t len = (size_t)(feed - end->bytes);
	assert_true(len + 1 <= LIMIT_LINE_BYTES);
	char *line = strndup(end->bytes, len);
	end->used -= len + 1;
	memmove(end->bytes, feed + 1, end->used);
	return line;
}

char *hear_bytes(struct fixture *fixture, struct peer_end *end, size_t len)
{
	uint64_t deadline = real_ms() + WAIT_MS;
	while (end->used < len) {
		assert_true(!end->ended && real_ms() < deadline);
		turn(fixture);
		receive(end);
	}
	char *bytes = strndup(end->bytes, len);
	end->used -= len;
	memmove(end->bytes, end->bytes + len, end->used);
	return bytes;
}

json_t *hear(struct fixture *fixture, struct peer_end *end)
{
	char *line = hear_text(fixture, end);
	assert_non_null(line);
	json_t *value = json_loads(line, 0, NULL);
	assert_non_null(value);
	free(line);
	return value;
}

void assert_hears(struct fixture *fixture, struct peer_end *end, const char *expected)
{
	char *line = hear_text(fixture, end);
	assert_non_null(line);
	assert_string_equal(line, expected);
	free(line);
}

void assert_ends(struct fixture *fixture, struct peer_end *end)
{
	assert_null(hear_text(fixture, end));
	assert_int_equal(end->used, 0);
}

/* Nothing comes, however often the loop turns. */
void assert_silent(struct fixture *fixture, struct peer_end *end)
{
	for (int i = 0; i < 20; i++) {
		turn(fixture);
		receive(end);
	}
	assert_false(end->ended);
	assert_int_equal(end->used, 0);
}

/* An error reply: its number, data.code and id as JSON text. */
void assert_hears_error(
	struct fixture *fixture, struct peer_end *end, int number, const char *code, const char *id)
{
	json_t *reply = hear(fixture, end);
	const json_t *error = json_object_get(reply, "error");
	assert_int_equal(json_integer_value(json_object_get(error, "code")), number);
	const json_t *data = json_object_get(error, "data");
	assert_string_equal(json_string_value(json_object_get(data, "code")), code);
	char *text = json_dumps(json_object_get(reply, "id"), JSON_ENCODE_ANY);
	assert_string_equal(text, id);
	free(text);
	assert_string_equal(json_string_value(json_object_get(reply, "jsonrpc")), "2.0");
	json_decref(reply);
}

void publish(struct fixture *fixture, const char *name, enum events_class class, const char *build,
	const char *capture, json_t *params)
{
	struct events_subject subject = {.build_key = build, .capture_id = capture};
	events_publish(server_events(fixture->server), name, class, &subject, params);
}

size_t open_descriptors(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 1024; fd++) {
		count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
	}
	return count;
}

void quiet(struct fixture *fixture)
{
	fixture->log.fd = open("/dev/null", O_WRONLY);
}

void fill(struct fixture *fixture, struct peer_end *end)
{
	for (int i = 0; i < 20; i++) {
		say(fixture, end, "{\"id\":1,\"method\":\"Long\",\"params\":{\"len\":60000}}");
	}
	turn(fixture);
	assert_true(uv_backend_timeout(&fixture->loop) > 0);
}
