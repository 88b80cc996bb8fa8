#include "profile/analysis.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The descriptors of this process, by the kernel. */
static size_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	size_t count = 0;
	while (readdir(folder) != NULL) {
		count++;
	}
	closedir(folder);
	return count;
}

/* Every test begins with a channel and ends with as many descriptors as before. */
struct channel {
	int daemon, analyzer;
	size_t before;
};

static int set_up(void **state)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	struct error err = {0};
	int pair[2];
	channel->before = open_files();
	if (!analysis_channel(pair, &err)) {
		return -1;
	}
	channel->daemon = pair[0];
	channel->analyzer = pair[1];
	*state = channel;
	return 0;
}

static int tear_down(void **state)
{
	struct channel *channel = *state;
	if (channel->daemon >= 0) {
		close(channel->daemon);
	}
	if (channel->analyzer >= 0) {
		close(channel->analyzer);
	}
	bool has_leaked = open_files() != channel->before;
	free(channel);
	return has_leaked ? -1 : 0;
}

static bool send_json(int fd, const char *text, const int *files, size_t count, struct error *err)
{
	json_t *body = json_loads(text, 0, NULL);
	assert_non_null(body);
	bool is_sent = analysis_send(fd, body, files, count, err);
	json_decref(body);
	return is_sent;
}

/* Sends bytes as they are, with copies of one descriptor, as a hostile peer may. */
static void send_raw(int fd, const void *bytes, size_t len, int file, size_t file_count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(253 * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, len};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
	if (file_count > 0) {
		packet.msg_control = control.bytes;
		packet.msg_controllen = CMSG_SPACE(file_count * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(file_count * sizeof(int));
		for (size_t i = 0; i < file_count; i++) {
			memcpy(CMSG_DATA(header) + i * sizeof(int), &file, sizeof(int));
		}
	}
	assert_int_equal(sendmsg(fd, &packet, MSG_NOSIGNAL), len);
}

static void gives_two_ends_that_no_child_inherits(void **state)
{
	struct channel *channel = *state;
	assert_true((fcntl(channel->daemon, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(channel->analyzer, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(channel->daemon, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(channel->analyzer, F_GETFL) & O_NONBLOCK) == 0);
}

static void delivers_packets_whole_and_in_order_in_both_directions(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	assert_true(send_json(channel->daemon, "{\"type\":\"finish\",\"n\":1}", NULL, 0, &err));
	assert_true(send_json(channel->daemon, "{\"type\":\"cancel\",\"n\":2}", NULL, 0, &err));
	assert_true(
		send_json(channel->analyzer, "{\"type\":\"done\",\"name\":\"\\u00e9\"}", NULL, 0, &err));
	struct analysis_message message = {0};
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_MESSAGE);
	assert_string_equal(analysis_message_type(&message), "finish");
	assert_int_equal(message.file_count, 0);
	assert_int_equal(analysis_message_take_file(&message, 0), -1);
	analysis_message_finish(&message);
	assert_null(message.body);
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_MESSAGE);
	assert_int_equal(json_integer_value(json_object_get(message.body, "n")), 2);
	analysis_message_finish(&message);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_MESSAGE);
	assert_string_equal(json_string_value(json_object_get(message.body, "name")), "\xc3\xa9");
	analysis_message_finish(&message);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_AGAIN);
}

static void passes_descriptors_in_order_that_are_the_same_open_files(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	int null = open("/dev/null", O_RDONLY); /* without close-on-exec */
	int files[] = {ends[1], null, ends[0]};
	assert_true(send_json(channel->daemon, "{\"type\":\"begin\"}", files, 3, &err));
	assert_int_equal(write(ends[1], "a", 1), 1);
	close(ends[1]);
	close(null);

	struct analysis_message message = {0};
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_MESSAGE);
	assert_int_equal(message.file_count, 3);
	int writable = analysis_message_take_file(&message, 0);
	assert_int_equal(analysis_message_take_file(&message, 0), -1);
	assert_true((fcntl(writable, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(message.files[1], F_GETFD) & FD_CLOEXEC) != 0);
	struct stat status, null_status;
	assert_int_equal(fstat(message.files[1], &status), 0);
	assert_int_equal(stat("/dev/null", &null_status), 0);
	assert_int_equal(status.st_rdev, null_status.st_rdev);
	analysis_message_finish(&message);

	/* What was taken stays open. */
	char text[4];
	assert_int_equal(write(writable, "b", 1), 1);
	close(writable);
	assert_int_equal(read(ends[0], text, sizeof(text)), 2);
	assert_memory_equal(text, "ab", 2);
	assert_int_equal(read(ends[0], text, sizeof(text)), 0);
	close(ends[0]);
}

static void passes_as_many_descriptors_as_stated_and_no_more(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	int files[ANALYSIS_FILES + 1];
	for (size_t i = 0; i <= ANALYSIS_FILES; i++) {
		files[i] = channel->daemon;
	}
	assert_false(
		send_json(channel->daemon, "{\"type\":\"begin\"}", files, ANALYSIS_FILES + 1, &err));
	assert_int_equal(err.code, ERROR_INTERNAL);
	assert_true(send_json(channel->daemon, "{\"type\":\"begin\"}", files, ANALYSIS_FILES, &err));
	struct analysis_message message = {0};
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_MESSAGE);
	assert_int_equal(message.file_count, ANALYSIS_FILES);
	analysis_message_finish(&message);
}

/* An object whose text has len bytes. */
static json_t *object_of(size_t len)
{
	static const char around[] = "{\"type\":\"answer\",\"x\":\"\"}";
	size_t filling_len = len - (sizeof(around) - 1);
	char *filling = malloc(filling_len + 1);
	memset(filling, 'x', filling_len);
	filling[filling_len] = '\0';
	json_t *object = json_pack("{s:s, s:s}", "type", "answer", "x", filling);
	free(filling);
	return object;
}

static void sends_the_largest_packet_and_refuses_a_larger_one(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	json_t *largest = object_of(ANALYSIS_PACKET_BYTES);
	json_t *larger = object_of(ANALYSIS_PACKET_BYTES + 1);
	assert_false(analysis_send(channel->daemon, larger, NULL, 0, &err));
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	assert_string_equal(err.detail, "");
	assert_true(analysis_send(channel->daemon, largest, NULL, 0, &err));
	struct analysis_message message = {0};
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_MESSAGE);
	assert_true(json_equal(message.body, largest));
	analysis_message_finish(&message);
	json_decref(largest);
	json_decref(larger);
}

static void says_that_a_full_channel_sent_nothing(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	size_t sent = 0;
	int file = channel->daemon;
	while (send_json(channel->daemon, "{\"type\":\"image\",\"image\":1}", &file, 1, &err)) {
		assert_true(++sent < 100000);
	}
	assert_true(sent > 0);
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	assert_string_equal(err.detail, "eagain");

	/* Exactly what was sent arrives, and then there is room again. */
	int flags = fcntl(channel->analyzer, F_GETFL);
	fcntl(channel->analyzer, F_SETFL, flags | O_NONBLOCK);
	struct analysis_message message = {0};
	size_t received = 0;
	enum analysis_result result;
	while ((result = analysis_receive(channel->analyzer, &message, &err)) == ANALYSIS_MESSAGE) {
		assert_int_equal(message.file_count, 1);
		analysis_message_finish(&message);
		received++;
	}
	assert_int_equal(result, ANALYSIS_AGAIN);
	assert_int_equal(received, sent);
	assert_true(send_json(channel->daemon, "{\"type\":\"finish\"}", NULL, 0, &err));
}

static void says_that_the_peer_is_gone(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	struct analysis_message message = {0};
	assert_true(send_json(channel->analyzer, "{\"type\":\"done\"}", NULL, 0, &err));
	close(channel->analyzer);
	channel->analyzer = -1;
	/* What was sent before still arrives. */
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_MESSAGE);
	analysis_message_finish(&message);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_CLOSED);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_CLOSED);
	assert_false(send_json(channel->daemon, "{\"type\":\"finish\"}", NULL, 0, &err));
	assert_int_equal(err.code, ERROR_IO);
	assert_string_equal(err.detail, "epipe");
}

static void says_that_a_peer_that_left_packets_unread_is_gone(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	assert_true(send_json(channel->daemon, "{\"type\":\"begin\"}", &channel->daemon, 1, &err));
	assert_true(send_json(channel->analyzer, "{\"type\":\"failed\"}", NULL, 0, &err));
	close(channel->analyzer);
	channel->analyzer = -1;
	struct analysis_message message = {0};
	/* Its last words still arrive. */
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_MESSAGE);
	assert_string_equal(analysis_message_type(&message), "failed");
	analysis_message_finish(&message);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_CLOSED);
	assert_false(send_json(channel->daemon, "{\"type\":\"finish\"}", NULL, 0, &err));
	assert_string_equal(err.detail, "epipe");
}

static void says_at_the_blocking_end_that_the_daemon_is_gone(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	close(channel->daemon);
	channel->daemon = -1;
	struct analysis_message message = {0};
	assert_int_equal(analysis_receive(channel->analyzer, &message, &err), ANALYSIS_CLOSED);
}

/* The packet, with two descriptors, is broken; none of them stays and message is untouched. */
static void assert_broken(
	struct channel *channel, const void *bytes, size_t len, const char *reason)
{
	struct error err = {0};
	struct analysis_message message = {0};
	size_t before = open_files();
	send_raw(channel->analyzer, bytes, len, channel->analyzer, 2);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_BROKEN);
	assert_null(message.body);
	assert_int_equal(message.file_count, 0);
	assert_int_equal(open_files(), before);
	assert_int_equal(err.code, ERROR_INTERNAL);
	if (strstr(err.message, reason) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
	}
}

static void refuses_what_is_no_object_with_a_type_and_keeps_no_descriptor(void **state)
{
	struct channel *channel = *state;
	static const char *const packets[][2] = {
		{"", "broken"},
		{"[]", "not an object"},
		{"[{\"type\":\"done\"}]", "not an object"},
		{"7", "broken"},
		{"null", "broken"},
		{"{}", "without a type"},
		{"{\"type\":1}", "without a type"},
		{"{\"type\":null}", "without a type"},
		{"{\"type\":\"done\"", "broken"},
		{"{\"type\":\"done\"} x", "broken"},
		{"{\"type\":\"done\",\"type\":\"failed\"}", "broken"},
		{"{\"type\":\"\xff\"}", "broken"},
	};
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		assert_broken(channel, packets[i][0], strlen(packets[i][0]), packets[i][1]);
	}
	assert_broken(channel, "{\"type\":\"done\"}\0", 16, "broken");
	/* The channel itself is still good. */
	struct error err = {0};
	struct analysis_message message = {0};
	assert_true(send_json(channel->analyzer, "{\"type\":\"done\"}", NULL, 0, &err));
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_MESSAGE);
	analysis_message_finish(&message);
}

static void refuses_deep_nesting(void **state)
{
	char text[20000] = "{\"type\":\"done\",\"x\":";
	size_t len = strlen(text);
	memset(text + len, '[', sizeof(text) - len);
	assert_broken(*state, text, sizeof(text), "broken");
}

static void refuses_a_packet_that_is_too_large(void **state)
{
	size_t len = ANALYSIS_PACKET_BYTES + 1;
	char *bytes = malloc(len);
	memset(bytes, ' ', len);
	memcpy(bytes, "{\"type\":\"done\"}", 15);
	assert_broken(*state, bytes, len, "more than 131072 bytes");
	free(bytes);
}

static void tells_an_empty_packet_from_the_end_of_the_channel(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	struct analysis_message message = {0};
	send_raw(channel->analyzer, "", 0, -1, 0);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_BROKEN);
	assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_AGAIN);
}

static void refuses_more_descriptors_than_stated_and_closes_them(void **state)
{
	struct channel *channel = *state;
	static const size_t counts[] = {ANALYSIS_FILES + 1, ANALYSIS_FILES + 2, 253};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct error err = {0};
		struct analysis_message message = {0};
		size_t before = open_files();
		send_raw(channel->analyzer, "{\"type\":\"done\"}", 15, channel->analyzer, counts[i]);
		assert_int_equal(analysis_receive(channel->daemon, &message, &err), ANALYSIS_BROKEN);
		assert_int_equal(open_files(), before);
		assert_non_null(strstr(err.message, "descriptors"));
	}
}

static void refuses_descriptors_that_this_process_has_no_room_for(void **state)
{
	struct channel *channel = *state;
	struct error err = {0};
	struct analysis_message message = {0};
	size_t before = open_files();
	int file = channel->daemon;
	int files[] = {file, file, file, file};
	assert_true(send_json(channel->analyzer, "{\"type\":\"done\"}", files, 4, &err));
	int next_fd = dup(file);
	close(next_fd);
	struct rlimit limit, small;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	small = (struct rlimit){(rlim_t)next_fd + 2, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	enum analysis_result result = analysis_receive(channel->daemon, &message, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(result, ANALYSIS_BROKEN);
	assert_int_equal(open_files(), before);
}

static void finishes_an_empty_message(void **state)
{
	(void)state;
	struct analysis_message message = {0};
	analysis_message_finish(&message);
	assert_int_equal(analysis_message_take_file(&message, 0), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gives_two_ends_that_no_child_inherits),
		CASE(delivers_packets_whole_and_in_order_in_both_directions),
		CASE(passes_descriptors_in_order_that_are_the_same_open_files),
		CASE(passes_as_many_descriptors_as_stated_and_no_more),
		CASE(sends_the_largest_packet_and_refuses_a_larger_one),
		CASE(says_that_a_full_channel_sent_nothing),
		CASE(says_that_the_peer_is_gone),
		CASE(says_that_a_peer_that_left_packets_unread_is_gone),
		CASE(says_at_the_blocking_end_that_the_daemon_is_gone),
		CASE(refuses_what_is_no_object_with_a_type_and_keeps_no_descriptor),
		CASE(refuses_deep_nesting),
		CASE(refuses_a_packet_that_is_too_large),
		CASE(tells_an_empty_packet_from_the_end_of_the_channel),
		CASE(refuses_more_descriptors_than_stated_and_closes_them),
		CASE(refuses_descriptors_that_this_process_has_no_room_for),
		CASE(finishes_an_empty_message),
	};
	return cmocka_run_group_tests_name("analysis", tests, NULL, NULL);
}
