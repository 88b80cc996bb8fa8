#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "support/server_dialogue.h"

static void answers_a_request_with_one_line_of_ascii(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	assert_silent(fixture, end);
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	say(fixture, end,
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"Empty\",\"params\":null,\"x\":1}\r");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
	assert_silent(fixture, end);
	hang_up(end);
}

static void a_request_cut_at_any_byte_is_the_same_request(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	for (size_t cut = 1; cut < strlen(ASK); cut++) {
		say_bytes(fixture, end, ASK, cut);
		turn(fixture);
		say(fixture, end, &ASK[cut]);
		assert_hears(fixture, end, ASKED);
	}
	const char *bytes = ASK "\n" ASK "\n";
	for (size_t i = 0; i < strlen(bytes); i++) {
		say_bytes(fixture, end, bytes + i, 1);
		turn(fixture);
	}
	assert_hears(fixture, end, ASKED);
	assert_hears(fixture, end, ASKED);
	assert_silent(fixture, end);
	hang_up(end);
}

static void a_client_killed_between_any_two_bytes_leaves_nothing(void **state)
{
	struct fixture *fixture = *state;
	const char *bytes = ASK "\n{\"id\":2,\"method\":\"Later\"}\n{\"id\":3";
	turn(fixture);
	size_t before = open_descriptors();
	size_t killed = 0;
	for (size_t len = 0; len <= strlen(bytes); len++) {
		for (int seen = 0; seen < 2; seen++) {
			int fd = connect_to(fixture);
			assert_int_equal(write(fd, bytes, len), len);
			if (seen == 1) {
				turn(fixture);
			}
			close(fd);
			killed++;
			WAIT_FOR(fixture, fixture->gone_clients == killed);
		}
	}
	assert_int_equal(server_clients(fixture->server), 0);
	assert_int_equal(open_descriptors(), before);
	/* Whole requests were carried out, and those that waited were told. */
	size_t whole = 2 * (strlen("\n{\"id\":3") + 0);
	assert_int_equal(fixture->gone_requests, whole);
	assert_int_equal(fixture->kept_count, whole);
	struct peer_end *end = dial(fixture);
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
}

static void a_bad_line_is_answered_and_the_next_one_counts(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	static const struct {
		const char *line;
		int number;
		const char *code, *id;
	} bad[] = {
		{"hello", -32700, "parse_error", "null"},
		{"1", -32700, "parse_error", "null"},
		{"{\"id\":1,\"id\":2}", -32700, "parse_error", "null"},
		{"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", -32700, "parse_error", "null"},
		{"[]", -32600, "invalid_request", "null"},
		{"[" ASK "]", -32600, "invalid_request", "null"},
		{"{}", -32600, "invalid_request", "null"},
		{"{\"id\":5}", -32600, "invalid_request", "5"},
		{"{\"id\":5,\"method\":7}", -32600, "invalid_request", "5"},
		{"{\"id\":5,\"jsonrpc\":\"1.0\",\"method\":\"Echo\"}", -32600, "invalid_request", "5"},
		{"{\"id\":5,\"jsonrpc\":2.0,\"method\":\"Echo\"}", -32600, "invalid_request", "5"},
		{"{\"id\":null,\"method\":\"Echo\"}", -32600, "invalid_request", "null"},
		{"{\"id\":true,\"method\":\"Echo\"}", -32600, "invalid_request", "null"},
		{"{\"id\":1.5,\"method\":\"Echo\"}", -32600, "invalid_request", "null"},
		{"{\"id\":9007199254740993,\"method\":\"Echo\"}", -32600, "invalid_request", "null"},
		{"{\"id\":1e300,\"method\":\"Echo\"}", -32600, "invalid_request", "null"},
		{"{\"id\":5,\"method\":\"Echo\",\"params\":[1]}", -32602, "bad_params", "5"},
		{"{\"id\":5,\"method\":\"Echo\",\"params\":\"a\"}", -32602, "bad_params", "5"},
		{"{\"id\":5,\"method\":\"Nonsense\"}", -32601, "unknown_method", "5"},
		{"{\"id\":5,\"method\":\"$/x\"}", -32601, "unknown_method", "5"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		say(fixture, end, bad[i].line);
		assert_hears_error(fixture, end, bad[i].number, bad[i].code, bad[i].id);
		say(fixture, end, ASK);
		assert_hears(fixture, end, ASKED);
	}
	hang_up(end);
}

static void ids_come_back_as_they_were_given(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	char longest[LIMIT_ID_BYTES + 3];
	memset(longest, 'a', sizeof(longest));
	longest[0] = '"';
	longest[LIMIT_ID_BYTES + 1] = '"';
	longest[LIMIT_ID_BYTES + 2] = '\0';
	const char *ids[] = {"0", "-7", "9007199254740992", "-9007199254740992", "\"\"", "\"7\"",
		"\"\\u00E9\"", longest};
	char line[512];
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(line, sizeof(line), "{\"id\":%s,\"method\":\"Empty\",\"params\":[]}", ids[i]);
		say(fixture, end, line);
		snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
		assert_hears(fixture, end, line);
	}
	say(fixture, end, "{\"id\":5.0,\"method\":\"Empty\"}");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}");
	/* An integer beyond 64 bits makes no line unreadable. */
	say(fixture, end, "{\"id\":6,\"method\":\"Empty\",\"params\":{\"a\":18446744073709551616}}");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}}");
	say(fixture, end, "{\"id\":7,\"method\":\"Empty\\u0000\"}");
	assert_hears_error(fixture, end, -32600, "invalid_request", "7");
	snprintf(line, sizeof(line), "{\"id\":\"a%s,\"method\":\"Empty\"}", longest + 1);
	say(fixture, end, line);
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	hang_up(end);
}

static void notifications_are_carried_out_and_never_answered(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"method\":\"Echo\"}");
	say(fixture, end, "{\"method\":\"Nonsense\"}");
	say(fixture, end, "{\"method\":\"Echo\",\"params\":[1]}");
	say(fixture, end, "{\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}");
	assert_silent(fixture, end);
	assert_int_equal(fixture->calls, 2);
	hang_up(end);
}

static void an_id_in_use_is_refused_until_its_reply(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	struct peer_end *other = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	say(fixture, end, "{\"id\":1,\"method\":\"Echo\"}");
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	say(fixture, end, "{\"id\":1.0,\"method\":\"Echo\"}");
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	say(fixture, end, "{\"id\":\"1\",\"method\":\"Empty\"}");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}");
	say(fixture, other, ASK);
	assert_hears(fixture, other, ASKED);
	assert_int_equal(fixture->kept_count, 1);
	request_reply(fixture->kept[0], json_pack("{s:i}", "late", 1));
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"late\":1}}");
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
	hang_up(other);
}

static void the_65th_request_in_flight_is_refused(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	char line[128];
	for (int i = 0; i < LIMIT_REQUESTS_IN_FLIGHT + 1; i++) {
		snprintf(line, sizeof(line), "{\"id\":%d,\"method\":\"Later\"}", i);
		say(fixture, end, line);
	}
	assert_hears_error(fixture, end, -32001, "limit_exceeded", "64");
	assert_int_equal(fixture->kept_count, LIMIT_REQUESTS_IN_FLIGHT);
	request_reply(fixture->kept[7], NULL);
	fixture->kept[7] = NULL;
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
	say(fixture, end, ASK);
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	say(fixture, end, "{\"id\":99,\"method\":\"Empty\"}");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
	hang_up(end);
	WAIT_FOR(fixture, fixture->gone_requests == LIMIT_REQUESTS_IN_FLIGHT - 1);
}

static void the_65th_client_is_told_and_closed(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *ends[LIMIT_CLIENTS];
	for (int i = 0; i < LIMIT_CLIENTS; i++) {
		ends[i] = dial(fixture);
	}
	struct peer_end *late = calloc(1, sizeof(*late));
	late->fd = connect_to(fixture);
	assert_hears_error(fixture, late, -32001, "limit_exceeded", "null");
	assert_ends(fixture, late);
	hang_up(late);
	assert_int_equal(server_clients(fixture->server), LIMIT_CLIENTS);
	hang_up(ends[0]);
	WAIT_FOR(fixture, server_clients(fixture->server) == LIMIT_CLIENTS - 1);
	ends[0] = dial(fixture);
	for (int i = 0; i < LIMIT_CLIENTS; i++) {
		say(fixture, ends[i], ASK);
		assert_hears(fixture, ends[i], ASKED);
		hang_up(ends[i]);
	}
}

static void a_line_too_long_is_answered_and_skipped(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	size_t len = LIMIT_REQUEST_BYTES + 1;
	char *line = malloc(len);
	memset(line, ' ', len);
	memcpy(line, ASK, strlen(ASK));
	say_bytes(fixture, end, line, len);
	say_bytes(fixture, end, "\n", 1);
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	say_bytes(fixture, end, line, len - 1);
	say_bytes(fixture, end, "\n", 1);
	assert_hears(fixture, end, ASKED);
	free(line);
	hang_up(end);
}

static void a_line_without_end_is_answered_and_closed(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	char piece[65536];
	memset(piece, 'a', sizeof(piece));
	for (size_t sent = 0; sent <= LIMIT_SKIPPED_BYTES; sent += sizeof(piece)) {
		say_bytes(fixture, end, piece, sizeof(piece));
		turn(fixture);
	}
	assert_hears_error(fixture, end, -32600, "invalid_request", "null");
	assert_ends(fixture, end);
	hang_up(end);
}

static void assert_receives(struct fixture *fixture, struct peer_end *end, const char *expected)
{
	char *bytes = hear_bytes(fixture, end, strlen(expected));
	assert_string_equal(bytes, expected);
	free(bytes);
}

static void header_framing_goes_both_ways(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	static const char ask[] =
		"Content-Length: 38\r\n\r\n{\"id\":1,\n \"method\":\"Echo\",\"params\":{}}";
	static const char reply[] =
		"Content-Length: 47\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"params\":{}}}";
	for (size_t i = 0; i < sizeof(ask) - 1; i++) {
		say_bytes(fixture, end, ask + i, 1);
		turn(fixture);
	}
	assert_receives(fixture, end, reply);
	say_bytes(fixture, end, ask, sizeof(ask) - 1);
	assert_receives(fixture, end, reply);
	hang_up(end);
}

static void headers_that_lead_nowhere_are_answered_and_closed(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say_bytes(fixture, end, "Content-Length: x\r\n\r\n{}", 23);
	char *header = hear_text(fixture, end);
	assert_int_equal(strncmp(header, "Content-Length: ", 16), 0);
	size_t len = strtoul(header + 16, NULL, 10);
	free(header);
	assert_receives(fixture, end, "\r\n");
	char *text = hear_bytes(fixture, end, len);
	json_t *reply = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(reply);
	const json_t *error = json_object_get(reply, "error");
	assert_int_equal(json_integer_value(json_object_get(error, "code")), -32600);
	json_decref(reply);
	assert_ends(fixture, end);
	hang_up(end);
	assert_int_equal(fixture->calls, 0);
}

static void a_result_that_fits_no_line_is_an_internal_error(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Long\",\"params\":{\"len\":61395}}");
	assert_hears_error(fixture, end, -32001, "internal", "1");
	/* The envelope around the text has 46 bytes, the line end included. */
	say(fixture, end, "{\"id\":1,\"method\":\"Long\",\"params\":{\"len\":61394}}");
	char *line = hear_text(fixture, end);
	assert_int_equal(strlen(line) + 1, LIMIT_LINE_BYTES);
	free(line);
	hang_up(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(answers_a_request_with_one_line_of_ascii),
		DIALOGUE(a_request_cut_at_any_byte_is_the_same_request),
		DIALOGUE(a_client_killed_between_any_two_bytes_leaves_nothing),
		DIALOGUE(a_bad_line_is_answered_and_the_next_one_counts),
		DIALOGUE(ids_come_back_as_they_were_given),
		DIALOGUE(notifications_are_carried_out_and_never_answered),
		DIALOGUE(an_id_in_use_is_refused_until_its_reply),
		DIALOGUE(the_65th_request_in_flight_is_refused),
		DIALOGUE(the_65th_client_is_told_and_closed),
		DIALOGUE(a_line_too_long_is_answered_and_skipped),
		DIALOGUE(a_line_without_end_is_answered_and_closed),
		DIALOGUE(header_framing_goes_both_ways),
		DIALOGUE(headers_that_lead_nowhere_are_answered_and_closed),
		DIALOGUE(a_result_that_fits_no_line_is_an_internal_error),
	};
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
