#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <poll.h>

#include <cmocka.h>

#include "client/profclient.h"

/* The library against a server that says exactly what a case wants. */

#define HELLO                                                                                      \
	"{\"id\":1,\"result\":{\"version\":\"9.9\",\"protocol\":{\"major\":1,\"minor\":7},\"pid\":42}" \
	"}\n"

/* What the server does: it reads a request line before each step, then writes the step's text. NULL ends them: it closes, or stays. */
struct server {
	char folder[32], path[64];
	int listener;
	const char *const *steps;
	bool stays; /* until the client closes */
	pthread_t thread;
	bool is_running;
};

static void read_line(int fd)
{
	char byte = 0;
	while (byte != '\n' && read(fd, &byte, 1) == 1) {
	}
}

static void *serve(void *context)
{
	struct server *server = context;
	int fd = accept(server->listener, NULL, NULL);
	for (size_t i = 0; server->steps[i] != NULL; i++) {
		read_line(fd);
		size_t len = strlen(server->steps[i]);
		if (send(fd, server->steps[i], len, MSG_NOSIGNAL) != (ssize_t)len) {
			break;
		}
	}
	if (server->stays) {
		struct pollfd poll_fd = {.fd = fd, .events = 0};
		poll(&poll_fd, 1, 20000);
	}
	close(fd);
	return NULL;
}

static int setup(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(server->folder, "/tmp/profclient-XXXXXX");
	if (mkdtemp(server->folder) == NULL) {
		return -1;
	}
	snprintf(server->path, sizeof(server->path), "%s/x.sock", server->folder);
	strcpy(address.sun_path, server->path);
	server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	*state = server;
	return bind(server->listener, (struct sockaddr *)&address, sizeof(address)) |
		   listen(server->listener, 4);
}

static int teardown(void **state)
{
	struct server *server = *state;
	if (server->is_running) {
		pthread_join(server->thread, NULL);
	}
	close(server->listener);
	unlink(server->path);
	rmdir(server->folder);
	free(server);
	return 0;
}

static void start(struct server *server, const char *const *steps, bool stays)
{
	server->steps = steps;
	server->stays = stays;
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	server->is_running = true;
}

static struct profclient *connect_to(
	const struct server *server, int timeout_ms, bool any_protocol, struct profclient_error *err)
{
	struct profclient_options options = {.size = sizeof(options),
		.socket_path = server->path,
		.timeout_ms = timeout_ms,
		.any_protocol = any_protocol};
	return profclient_connect(&options, err);
}

static struct profclient *connected(struct server *server, const char *const *steps, bool stays)
{
	struct profclient_error err = {0};
	start(server, steps, stays);
	struct profclient *client = connect_to(server, 10000, false, &err);
	if (client == NULL) {
		fail_msg("%s", err.message);
	}
	return client;
}

static void has_what_the_server_said_of_itself(void **state)
{
	static const char *const steps[] = {HELLO, NULL};
	struct profclient *client = connected(*state, steps, true);
	assert_string_equal(
		json_string_value(json_object_get(profclient_hello(client), "version")), "9.9");
	assert_true(profclient_fd(client) >= 0);
	assert_false(profclient_wants_write(client));
	profclient_close(client);
}

static void keeps_events_in_order_while_it_waits_for_a_reply(void **state)
{
	static const char *const steps[] = {HELLO,
		"{\"method\":\"A\",\"params\":{\"seq\":1}}\n{\"method\":\"B\",\"params\":{\"seq\":2}}\n"
		"{\"id\":2,\"result\":{\"x\":5}}\n{\"method\":\"C\",\"params\":{\"seq\":3}}\n",
		NULL};
	struct profclient *client = connected(*state, steps, true);
	struct profclient_error err = {0};
	json_t *result = profclient_call(client, "Ping", NULL, 10000, &err);
	assert_int_equal(json_integer_value(json_object_get(result, "x")), 5);
	json_decref(result);
	for (const char *name = "A\0B\0C"; *name != '\0'; name += 2) {
		json_t *event = NULL;
		assert_int_equal(profclient_event(client, 10000, &event, &err), PROFCLIENT_GOT);
		assert_string_equal(profclient_event_name(event), name);
		json_decref(event);
		if (*name == 'C') {
			break;
		}
	}
	json_t *event = NULL;
	assert_false(profclient_has_event(client));
	assert_int_equal(profclient_event(client, 0, &event, &err), PROFCLIENT_NOTHING);
	assert_int_equal(profclient_event(client, 30, &event, &err), PROFCLIENT_NOTHING);
	profclient_close(client);
}

static void finds_replies_by_their_id_in_any_order(void **state)
{
	static const char *const steps[] = {HELLO, "",
		"{\"id\":3,\"result\":\"three\"}\n{\"id\":2,\"error\":{\"code\":-32001,\"message\":\"no "
		"such build\",\"data\":{\"code\":\"build_not_found\",\"detail\":\"d\",\"hint\":\"h\"}}}\n",
		NULL};
	struct profclient *client = connected(*state, steps, true);
	struct profclient_error err = {0};
	json_t *result = NULL;
	int64_t first = profclient_send(client, "GetProcess", json_object(), &err);
	assert_int_equal(profclient_reply(client, first, 0, &result, &err), PROFCLIENT_NOTHING);
	int64_t second = profclient_send(client, "Ping", NULL, &err);
	assert_true(first > 0 && second > first);
	assert_int_equal(profclient_reply(client, second, 10000, &result, &err), PROFCLIENT_GOT);
	assert_string_equal(json_string_value(result), "three");
	json_decref(result);
	assert_int_equal(profclient_reply(client, first, 10000, &result, &err), PROFCLIENT_FAILED);
	assert_string_equal(err.code, "build_not_found");
	assert_string_equal(err.detail, "d");
	assert_string_equal(err.hint, "h");
	assert_string_equal(err.message, "no such build");
	assert_false(err.retryable);
	/* Both are done with. */
	assert_int_equal(profclient_reply(client, first, 0, &result, &err), PROFCLIENT_FAILED);
	assert_string_equal(err.code, "invalid_request");
	profclient_close(client);
}

static void drops_a_reply_that_was_forgotten(void **state)
{
	static const char *const steps[] = {
		HELLO, "", "{\"id\":2,\"result\":1}\n{\"id\":3,\"result\":2}\n", NULL};
	struct profclient *client = connected(*state, steps, true);
	json_t *result = NULL;
	int64_t forgotten = profclient_send(client, "Ping", NULL, NULL);
	profclient_forget(client, forgotten);
	result = profclient_call(client, "Ping", NULL, 10000, NULL);
	assert_int_equal(json_integer_value(result), 2);
	json_decref(result);
	profclient_close(client);
}

static void a_call_that_is_not_answered_in_time_fails_and_the_next_one_works(void **state)
{
	static const char *const steps[] = {
		HELLO, "", "{\"id\":2,\"result\":1}\n{\"id\":3,\"result\":2}\n", NULL};
	struct profclient *client = connected(*state, steps, true);
	struct profclient_error err = {0};
	assert_null(profclient_call(client, "WaitCapture", NULL, 50, &err));
	assert_string_equal(err.code, "timeout");
	assert_string_equal(err.detail, "no_reply");
	assert_non_null(strstr(err.message, "WaitCapture"));
	json_t *result = profclient_call(client, "Ping", NULL, 10000, &err);
	assert_int_equal(json_integer_value(result), 2);
	json_decref(result);
	profclient_close(client);
}

static void what_came_before_the_end_can_still_be_taken(void **state)
{
	static const char *const steps[] = {
		HELLO, "{\"id\":2,\"result\":7}\n{\"method\":\"DaemonStopping\",\"params\":{}}\n", NULL};
	struct profclient *client = connected(*state, steps, false);
	struct profclient_error err = {0};
	int64_t id = profclient_send(client, "Shutdown", NULL, &err);
	while (profclient_process(client, &err)) {
		poll(&(struct pollfd){.fd = profclient_fd(client), .events = POLLIN}, 1, 10000);
	}
	assert_string_equal(err.detail, "disconnected");
	json_t *value = NULL;
	assert_true(profclient_has_event(client));
	assert_int_equal(profclient_event(client, -1, &value, &err), PROFCLIENT_GOT);
	json_decref(value);
	assert_int_equal(profclient_reply(client, id, -1, &value, &err), PROFCLIENT_GOT);
	json_decref(value);
	assert_int_equal(profclient_event(client, -1, &value, &err), PROFCLIENT_FAILED);
	assert_string_equal(err.code, "io");
	assert_int_equal(profclient_send(client, "Ping", NULL, &err), 0);
	profclient_close(client);
}

static void a_refusal_without_an_id_is_the_reason(void **state)
{
	static const char *const steps[] = {
		"{\"id\":null,\"error\":{\"code\":-32001,\"message\":\"64 clients are connected\",\"data\":"
		"{\"code\":\"limit_exceeded\",\"retryable\":true}}}\n",
		NULL};
	struct server *server = *state;
	struct profclient_error err = {0};
	start(server, steps, false);
	assert_null(connect_to(server, 10000, false, &err));
	assert_string_equal(err.code, "limit_exceeded");
	assert_string_equal(err.message, "64 clients are connected");
	assert_true(err.retryable);
}

static void a_server_that_does_not_answer_is_told_as_hung(void **state)
{
	static const char *const steps[] = {NULL};
	struct server *server = *state;
	struct profclient_error err = {0};
	start(server, steps, true);
	assert_null(connect_to(server, 100, false, &err));
	assert_string_equal(err.detail, "hung");
	assert_non_null(strstr(err.message, server->path));
	char pid[16];
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_non_null(strstr(err.hint, pid)); /* the server is this process */
}

static void another_major_version_is_refused_unless_asked_for(void **state)
{
	static const char *const steps[] = {
		"{\"id\":1,\"result\":{\"version\":\"7.0\",\"protocol\":{\"major\":7,\"minor\":0}}}\n",
		NULL};
	struct server *server = *state;
	struct profclient_error err = {0};
	start(server, steps, true);
	assert_null(connect_to(server, 10000, false, &err));
	assert_string_equal(err.detail, "version_mismatch");
	assert_non_null(strstr(err.message, "7.0"));
	pthread_join(server->thread, NULL);
	start(server, steps, true);
	struct profclient *client = connect_to(server, 10000, true, &err);
	assert_non_null(client);
	profclient_close(client);
}

static void a_server_that_sends_no_json_ends_the_connection(void **state)
{
	static const char *const steps[] = {HELLO, "220 mail.example ESMTP\n", NULL};
	struct profclient *client = connected(*state, steps, true);
	struct profclient_error err = {0};
	assert_null(profclient_call(client, "Ping", NULL, 10000, &err));
	assert_non_null(strstr(err.message, "cannot be read"));
	assert_false(profclient_process(client, &err));
	profclient_close(client);
}

static void sending_never_waits_and_has_an_end(void **state)
{
	static const char *const steps[] = {HELLO, NULL};
	struct profclient *client = connected(*state, steps, true); /* it reads no more */
	struct profclient_error err = {0};
	char *text = calloc(1, 1024 * 1024 + 1);
	memset(text, 'x', 1024 * 1024);
	int sent = 0;
	while (sent < 64 &&
		   profclient_send(client, "WriteStdin", json_pack("{s:s}", "data", text), &err) != 0) {
		sent++;
	}
	free(text);
	assert_true(profclient_wants_write(client));
	assert_in_range(sent, 15, 20);
	assert_string_equal(err.code, "limit_exceeded");
	assert_true(profclient_process(client, &err));
	profclient_close(client);
}

static void the_end_is_noticed_while_something_is_unsent(void **state)
{
	static const char *const steps[] = {HELLO, NULL};
	struct profclient *client = connected(*state, steps, false);
	struct profclient_error err = {0};
	poll(&(struct pollfd){.fd = profclient_fd(client), .events = POLLIN}, 1, 10000);
	assert_null(profclient_call(client, "Ping", NULL, 10000, &err));
	assert_string_equal(err.detail, "disconnected");
	profclient_close(client);
}

static void tells_why_it_cannot_connect(void **state)
{
	struct server *server = *state;
	struct profclient_error err = {0};
	char path[300];
	struct profclient_options options = {.size = sizeof(options), .socket_path = path};
	snprintf(path, sizeof(path), "%s/other.sock", server->folder);
	assert_null(profclient_connect(&options, &err));
	assert_string_equal(err.code, "io");
	assert_string_equal(err.detail, "not_running");
	assert_non_null(strstr(err.message, path));

	FILE *file = fopen(path, "w");
	fclose(file);
	assert_null(profclient_connect(&options, &err));
	assert_string_equal(err.detail, "not_a_socket");
	unlink(path);

	memset(path, 'x', 200);
	path[0] = '/';
	path[200] = '\0';
	assert_null(profclient_connect(&options, &err));
	assert_string_equal(err.detail, "path_too_long");
	assert_null(profclient_connect(&options, NULL));
	profclient_close(NULL);
}

static void options_of_an_older_or_wrong_size_are_understood(void **state)
{
	struct server *server = *state;
	struct profclient_error err = {0};
	char path[200];
	/* Built when the struct ended behind socket_path. */
	struct profclient_options options = {.size = offsetof(struct profclient_options, client),
		.socket_path = server->path,
		.client = (const char *)1};
	assert_true(profclient_socket_path(&options, path, sizeof(path), &err));
	assert_string_equal(path, server->path);
	assert_false(profclient_socket_path(&options, path, 5, &err));
	assert_string_equal(path, server->path);
	options.size = 0;
	assert_null(profclient_connect(&options, &err));
	assert_string_equal(err.code, "bad_params");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(has_what_the_server_said_of_itself),
		CASE(keeps_events_in_order_while_it_waits_for_a_reply),
		CASE(finds_replies_by_their_id_in_any_order),
		CASE(drops_a_reply_that_was_forgotten),
		CASE(a_call_that_is_not_answered_in_time_fails_and_the_next_one_works),
		CASE(what_came_before_the_end_can_still_be_taken),
		CASE(a_refusal_without_an_id_is_the_reason),
		CASE(a_server_that_does_not_answer_is_told_as_hung),
		CASE(another_major_version_is_refused_unless_asked_for),
		CASE(a_server_that_sends_no_json_ends_the_connection),
		CASE(sending_never_waits_and_has_an_end),
		CASE(the_end_is_noticed_while_something_is_unsent),
		CASE(tells_why_it_cannot_connect),
		CASE(options_of_an_older_or_wrong_size_are_understood),
	};
	return cmocka_run_group_tests_name("profclient", tests, NULL, NULL);
}
