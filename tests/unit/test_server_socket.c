#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "protocol/socket_path.h"
#include "support/server_dialogue.h"

static void the_socket_is_private_and_leaves_only_the_lock(void **state)
{
	struct fixture *fixture = *state;
	struct stat status;
	char lock[SOCKET_PATH_BYTES + 8], temporary[SOCKET_PATH_BYTES + 8], text[32] = "";
	snprintf(lock, sizeof(lock), "%s.lock", fixture->path);
	snprintf(temporary, sizeof(temporary), "%s.new", fixture->path);
	assert_int_equal(lstat(fixture->path, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(lstat(lock, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(access(temporary, F_OK), -1);
	FILE *file = fopen(lock, "r");
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_int_equal(atoi(text), getpid());
	server_destroy(fixture->server);
	assert_int_equal(access(fixture->path, F_OK), -1);
	assert_int_equal(access(lock, F_OK), 0);
	struct error err;
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
}

static void a_second_server_is_refused_with_the_firsts_pid(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	char pid[32];
	snprintf(pid, sizeof(pid), "pid %d", (int)getpid());
	assert_null(open_server(fixture, &err));
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	assert_string_equal(err.detail, "already_running");
	assert_non_null(strstr(err.message, pid));
	struct peer_end *end = dial(fixture);
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
}

static void a_stale_socket_is_replaced(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	server_destroy(fixture->server);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, fixture->path, strlen(fixture->path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	assert_int_equal(access(fixture->path, F_OK), 0);
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
	struct peer_end *end = dial(fixture);
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
}

static void what_is_not_a_socket_is_refused_and_kept(void **state)
{
	struct fixture *fixture = *state;
	struct error err = {0};
	server_destroy(fixture->server);
	fclose(fopen(fixture->path, "w"));
	assert_null(open_server(fixture, &err));
	assert_int_equal(err.code, ERROR_NOT_PERMITTED);
	assert_non_null(strstr(err.message, fixture->path));
	assert_int_equal(access(fixture->path, F_OK), 0);
	unlink(fixture->path);
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
}

static void anothers_socket_under_our_name_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	unlink(fixture->path);
	fclose(fopen(fixture->path, "w"));
	server_destroy(fixture->server);
	assert_int_equal(access(fixture->path, F_OK), 0);
	unlink(fixture->path);
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
}

static void the_longest_path_works(void **state)
{
	struct fixture *fixture = *state;
	struct error err;
	server_destroy(fixture->server);
	size_t len = strlen(fixture->path);
	memset(fixture->path + len, 'k', SOCKET_PATH_BYTES - 1 - len);
	fixture->path[SOCKET_PATH_BYTES - 1] = '\0';
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
	struct peer_end *end = dial(fixture);
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
}

static void another_users_process_is_told_and_closed(void **state)
{
	struct fixture *fixture = *state;
	if (geteuid() != 0) {
		print_message("needs root, to become another user\n");
		skip();
	}
	quiet(fixture);
	assert_int_equal(chmod(fixture->folder, 0711), 0);
	assert_int_equal(chmod(fixture->path, 0666), 0);
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid_t child = fork();
	if (child == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		memcpy(address.sun_path, fixture->path, strlen(fixture->path) + 1);
		char text[4096];
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (setuid(65534) != 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
			_exit(1);
		}
		send(fd, ASK "\n", strlen(ASK) + 1, MSG_NOSIGNAL);
		ssize_t len = 0;
		while ((len = read(fd, text, sizeof(text))) > 0) {
			send(fds[1], text, (size_t)len, 0);
		}
		_exit(0);
	}
	close(fds[1]);
	struct peer_end *end = calloc(1, sizeof(*end));
	end->fd = fds[0];
	fcntl(end->fd, F_SETFL, O_NONBLOCK);
	assert_hears_error(fixture, end, -32001, "not_permitted", "null");
	assert_ends(fixture, end);
	assert_int_equal(fixture->calls, 0);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fixture->log.fd);
	hang_up(end);
}

static void on_server_closed(void *context)
{
	((struct fixture *)context)->closed = true;
}

static void reopen(struct fixture *fixture)
{
	struct error err;
	server_destroy(fixture->server);
	fixture->server = open_server(fixture, &err);
	assert_non_null(fixture->server);
}

static void closing_sends_what_is_queued_first(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *reader = dial(fixture);
	struct peer_end *idle = dial(fixture);
	fill(fixture, reader);
	server_close(fixture->server, 60000, on_server_closed);
	assert_int_equal(access(fixture->path, F_OK), -1);
	for (int i = 0; i < 20; i++) {
		char *line = hear_text(fixture, reader);
		assert_true(strlen(line) > 60000);
		free(line);
	}
	assert_ends(fixture, reader);
	assert_ends(fixture, idle);
	WAIT_FOR(fixture, fixture->closed);
	assert_int_equal(fixture->gone_clients, 2);
	hang_up(reader);
	hang_up(idle);
	reopen(fixture);
}

static void closing_does_not_wait_longer_than_it_was_told(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":2,\"method\":\"Later\"}");
	fill(fixture, end);
	server_close(fixture->server, 50, on_server_closed);
	WAIT_FOR(fixture, fixture->closed);
	assert_int_equal(fixture->gone_requests, 1);
	hang_up(end);
	reopen(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(the_socket_is_private_and_leaves_only_the_lock),
		DIALOGUE(a_second_server_is_refused_with_the_firsts_pid),
		DIALOGUE(a_stale_socket_is_replaced),
		DIALOGUE(what_is_not_a_socket_is_refused_and_kept),
		DIALOGUE(anothers_socket_under_our_name_is_kept),
		DIALOGUE(the_longest_path_works),
		DIALOGUE(another_users_process_is_told_and_closed),
		DIALOGUE(closing_sends_what_is_queued_first),
		DIALOGUE(closing_does_not_wait_longer_than_it_was_told),
	};
	return cmocka_run_group_tests_name("server_socket", tests, NULL, NULL);
}
