#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "server/events.h"
#include "support/server_dialogue.h"

static void a_half_closed_client_gets_the_replies_it_waits_for(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	say(fixture, end, "{\"id\":2,\"method\":\"Later\"}");
	shutdown(end->fd, SHUT_WR);
	assert_silent(fixture, end);
	assert_int_equal(fixture->gone_requests, 0);
	request_reply(fixture->kept[1], NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
	assert_silent(fixture, end);
	request_reply(fixture->kept[0], NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_ends(fixture, end);
	assert_int_equal(fixture->gone_requests, 0);
	hang_up(end);
	WAIT_FOR(fixture, fixture->gone_clients == 1);
}

static void a_half_closed_client_gets_its_events_to_the_end(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end,
		"{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\",\"capture\":\"c\"}}");
	shutdown(end->fd, SHUT_WR);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_silent(fixture, end);
	publish(fixture, "Seen", EVENTS_LOSSLESS, "b", NULL, NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"method\":\"Seen\",\"params\":{\"seq\":1}}");
	events_forget(server_events(fixture->server), &(struct events_subject){.build_key = "b"});
	assert_silent(fixture, end);
	publish(fixture, "Last", EVENTS_LOSSLESS, NULL, "c", NULL);
	events_forget(server_events(fixture->server), &(struct events_subject){.capture_id = "c"});
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"method\":\"Last\",\"params\":{\"seq\":2}}");
	assert_ends(fixture, end);
	hang_up(end);
}

static void who_hears_of_a_build_hears_of_the_end_of_a_capture_that_outlives_it(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture), *other = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	say(fixture, other, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"of others\"}}");
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_hears(fixture, other, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_true(events_pass_on(server_events(fixture->server), "b", "c"));
	assert_true(events_pass_on(server_events(fixture->server), "b", "c"));
	events_forget(server_events(fixture->server), &(struct events_subject){.build_key = "b"});
	publish(fixture, "Last", EVENTS_LOSSLESS, "b", "c", NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"method\":\"Last\",\"params\":{\"seq\":1}}");
	publish(fixture, "New", EVENTS_LOSSLESS, "b", NULL, NULL);
	assert_silent(fixture, end);
	assert_silent(fixture, other);
	hang_up(end);
	hang_up(other);
}

static void a_half_closed_client_may_be_subscribed_right_after_its_last_reply(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	struct events_subject subject = {.capture_id = "c"};
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	shutdown(end->fd, SHUT_WR);
	assert_silent(fixture, end);
	struct client *client = request_client(fixture->kept[0]);
	request_reply(fixture->kept[0], NULL);
	assert_true(events_subscribe(server_events(fixture->server), client, &subject));
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_silent(fixture, end);
	publish(fixture, "Seen", EVENTS_LOSSLESS, NULL, "c", NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"method\":\"Seen\",\"params\":{\"seq\":1}}");
	hang_up(end);
}

/* Its captures keep it, not the programs that it launched. */
static void a_half_closed_client_does_not_stay_for_a_build(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	shutdown(end->fd, SHUT_WR);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_ends(fixture, end);
	hang_up(end);
}

static void a_half_closed_client_without_business_is_closed(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, ASK);
	shutdown(end->fd, SHUT_WR);
	assert_hears(fixture, end, ASKED);
	assert_ends(fixture, end);
	hang_up(end);
}

static void a_last_line_without_line_end_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say_bytes(fixture, end, ASK, strlen(ASK));
	shutdown(end->fd, SHUT_WR);
	assert_hears_error(fixture, end, -32700, "parse_error", "null");
	assert_ends(fixture, end);
	assert_int_equal(fixture->calls, 0);
	hang_up(end);
}

static void a_half_closed_client_that_vanishes_is_noticed_at_once(void **state)
{
	struct fixture *fixture = *state;
	turn(fixture);
	size_t before = open_descriptors();
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	shutdown(end->fd, SHUT_WR);
	WAIT_FOR(fixture, fixture->kept_count == 1);
	assert_silent(fixture, end);
	hang_up(end);
	turn(fixture);
	assert_int_equal(fixture->gone_requests, 1);
	assert_int_equal(fixture->gone_clients, 1);
	assert_int_equal(open_descriptors(), before);
}

static void a_waiting_client_that_vanishes_is_noticed_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	WAIT_FOR(fixture, fixture->kept_count == 1);
	hang_up(end);
	turn(fixture);
	assert_int_equal(fixture->gone_requests, 1);
	assert_int_equal(fixture->gone_clients, 1);
}

static void a_client_that_leaves_replies_unread_is_noticed_at_once(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Later\"}");
	say(fixture, end, ASK);
	turn(fixture);
	hang_up(end);
	turn(fixture);
	assert_int_equal(fixture->gone_requests, 1);
}

/* CPU time and switches of this process: an idle server has nothing to wake up for. */
static void a_half_closed_or_idle_client_costs_no_wake_up(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *idle = dial(fixture);
	struct peer_end *half = dial(fixture);
	say(fixture, half, "{\"id\":1,\"method\":\"Later\"}");
	shutdown(half->fd, SHUT_WR);
	assert_silent(fixture, half);
	assert_silent(fixture, idle);
	assert_int_equal(uv_backend_timeout(&fixture->loop), -1);
	struct pollfd backend = {.fd = uv_backend_fd(&fixture->loop), .events = POLLIN};
	assert_int_equal(poll(&backend, 1, 100), 0);
	hang_up(idle);
	hang_up(half);
}

static void events_reach_subscribers_once_and_in_order_with_replies(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *both = dial(fixture);
	struct peer_end *one = dial(fixture);
	struct peer_end *none = dial(fixture);
	say(fixture, both,
		"{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\",\"capture\":\"c\"}}");
	say(fixture, both, "{\"id\":2,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	say(fixture, one, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"capture\":\"c\"}}");
	say(fixture, both, "{\"id\":3,\"method\":\"Later\"}");
	for (int id = 1; id <= 2; id++) {
		json_decref(hear(fixture, both));
	}
	json_decref(hear(fixture, one));
	WAIT_FOR(fixture, fixture->kept_count == 1);
	assert_int_equal(events_next_seq(server_events(fixture->server)), 1);
	publish(fixture, "A", EVENTS_LOSSLESS, "b", "c", json_pack("{s:i}", "n", 1));
	publish(fixture, "Unheard", EVENTS_LOSSLESS, "other", NULL, json_pack("{s:i}", "n", 2));
	request_reply(fixture->kept[0], NULL);
	publish(fixture, "B", EVENTS_DROPPABLE, "b", NULL, NULL);
	events_broadcast(server_events(fixture->server), "All", json_object());
	assert_int_equal(events_next_seq(server_events(fixture->server)), 5);
	assert_hears(
		fixture, both, "{\"jsonrpc\":\"2.0\",\"method\":\"A\",\"params\":{\"n\":1,\"seq\":1}}");
	assert_hears(fixture, both, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
	assert_hears(fixture, both, "{\"jsonrpc\":\"2.0\",\"method\":\"B\",\"params\":{\"seq\":3}}");
	assert_hears(fixture, both, "{\"jsonrpc\":\"2.0\",\"method\":\"All\",\"params\":{\"seq\":4}}");
	assert_hears(
		fixture, one, "{\"jsonrpc\":\"2.0\",\"method\":\"A\",\"params\":{\"n\":1,\"seq\":1}}");
	assert_hears(fixture, one, "{\"jsonrpc\":\"2.0\",\"method\":\"All\",\"params\":{\"seq\":4}}");
	assert_hears(fixture, none, "{\"jsonrpc\":\"2.0\",\"method\":\"All\",\"params\":{\"seq\":4}}");
	assert_silent(fixture, both);
	assert_silent(fixture, one);
	assert_silent(fixture, none);
	hang_up(both);
	hang_up(one);
	hang_up(none);
}

static void an_event_that_fits_no_line_is_dropped(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	fixture->log.level = LOG_ERROR;
	fixture->log.fd = open("/dev/null", O_WRONLY);
	say(fixture, end, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	json_decref(hear(fixture, end));
	char text[LIMIT_LINE_BYTES];
	memset(text, 'x', sizeof(text));
	publish(fixture, "A", EVENTS_LOSSLESS, "b", NULL,
		json_pack("{s:o}", "text", json_stringn(text, sizeof(text))));
	publish(fixture, "B", EVENTS_LOSSLESS, "b", NULL, NULL);
	assert_hears(fixture, end, "{\"jsonrpc\":\"2.0\",\"method\":\"B\",\"params\":{\"seq\":2}}");
	close(fixture->log.fd);
	hang_up(end);
}

static json_t *output(size_t n)
{
	char text[4000];
	memset(text, 'x', sizeof(text));
	return json_pack("{s:I, s:o}", "n", (json_int_t)n, "data", json_stringn(text, sizeof(text)));
}

static void a_slow_reader_misses_output_only_and_learns_how_much(void **state)
{
	struct fixture *fixture = *state;
	enum { COUNT = 1000 };
	struct peer_end *slow = dial(fixture);
	struct peer_end *quick = dial(fixture);
	say(fixture, slow, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	say(fixture, quick, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	json_decref(hear(fixture, slow));
	json_decref(hear(fixture, quick));
	for (int i = 0; i < COUNT; i++) {
		publish(fixture, "Out", EVENTS_DROPPABLE, "b", NULL, output((size_t)i));
		publish(fixture, "Progress", EVENTS_LATEST, "b", NULL, json_pack("{s:i}", "n", i));
		/* The quick one gets each at once, whatever the other does. */
		for (int line = 0; line < 2; line++) {
			json_t *event = hear(fixture, quick);
			const json_t *params = json_object_get(event, "params");
			assert_int_equal(json_integer_value(json_object_get(params, "n")), i);
			json_decref(event);
		}
	}
	publish(fixture, "End", EVENTS_LOSSLESS, "b", NULL, NULL);
	json_decref(hear(fixture, quick));

	json_int_t got = 0, told = 0, last_n = -1, last_seq = 0, last_progress = -1;
	size_t progress_lines = 0;
	bool ended = false;
	while (!ended || got + told < COUNT) {
		json_t *event = hear(fixture, slow);
		const char *name = json_string_value(json_object_get(event, "method"));
		const json_t *params = json_object_get(event, "params");
		json_int_t n = json_integer_value(json_object_get(params, "n"));
		json_int_t seq = json_integer_value(json_object_get(params, "seq"));
		if (strcmp(name, "Out") == 0) {
			assert_true(n > last_n);
			last_n = n;
			got++;
		} else if (strcmp(name, "EventsDropped") == 0) {
			const json_t *counts = json_object_get(params, "counts");
			told += json_integer_value(json_object_get(counts, "Out"));
			assert_true(seq > last_seq);
		} else if (strcmp(name, "Progress") == 0) {
			progress_lines++;
			last_progress = n;
		} else {
			assert_string_equal(name, "End");
			ended = true;
		}
		last_seq = strcmp(name, "Progress") == 0 ? last_seq : seq;
		json_decref(event);
	}
	assert_int_equal(got + told, COUNT);
	assert_true(told > 0);
	/* About a megabyte and what the socket holds, of four. */
	assert_true(got < 400 && got > 200);
	assert_int_equal(last_progress, COUNT - 1);
	assert_true(progress_lines < 200);
	/* It is in step again. */
	publish(fixture, "Out", EVENTS_DROPPABLE, "b", NULL, output(COUNT));
	json_t *event = hear(fixture, slow);
	const json_t *params = json_object_get(event, "params");
	assert_int_equal(json_integer_value(json_object_get(params, "n")), COUNT);
	json_decref(event);
	assert_int_equal(uv_backend_timeout(&fixture->loop), -1);
	hang_up(slow);
	hang_up(quick);
}

/* Writes requests for long replies and reads nothing, until the server does not read either. Returns how many were carried out. */
static size_t ask_without_reading(struct fixture *fixture, struct peer_end *end)
{
	const char *line = "{\"id\":1,\"method\":\"Long\",\"params\":{\"len\":60000}}\n";
	size_t before = 0;
	for (int quiet_turns = 0; quiet_turns < 50; quiet_turns++) {
		if (send(end->fd, line, strlen(line), MSG_NOSIGNAL) > 0 || fixture->calls > before) {
			quiet_turns = 0;
		}
		before = fixture->calls;
		turn(fixture);
	}
	return fixture->calls;
}

static void who_does_not_read_replies_is_not_read_either(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	struct peer_end *other = dial(fixture);
	size_t carried_out = ask_without_reading(fixture, end);
	/* The replies that wait, and what the socket holds. */
	assert_in_range(
		carried_out, LIMIT_QUEUE_PAUSE_BYTES / 60100, LIMIT_QUEUE_PAUSE_BYTES / 60100 + 20);
	assert_int_equal(fixture->gone_clients, 0);
	say(fixture, other, ASK);
	assert_hears(fixture, other, ASKED);
	/* Nothing is lost once it reads: what was written and not read before is carried out too. */
	size_t heard = 0;
	while (heard < carried_out || fixture->calls > heard + 1) {
		char *text = hear_text(fixture, end);
		assert_true(strlen(text) > 60000);
		free(text);
		heard++;
	}
	assert_true(heard > carried_out);
	hang_up(end);
	hang_up(other);
}

static void who_vanishes_while_it_is_not_read_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	quiet(fixture);
	say(fixture, end, "{\"id\":2,\"method\":\"Later\"}");
	ask_without_reading(fixture, end);
	assert_int_equal(fixture->gone_clients, 0);
	hang_up(end);
	WAIT_FOR(fixture, fixture->gone_clients == 1);
	assert_int_equal(fixture->gone_requests, 1);
	close(fixture->log.fd);
}

static void state_changes_that_nobody_reads_are_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	struct peer_end *other = dial(fixture);
	quiet(fixture);
	say(fixture, end, "{\"id\":1,\"method\":\"Watch\",\"params\":{\"build\":\"b\"}}");
	json_decref(hear(fixture, end));
	char *text = malloc(50001);
	memset(text, 'a', 50000);
	text[50000] = '\0';
	size_t published = 0;
	for (; fixture->gone_clients == 0 && published < 1000; published++) {
		publish(fixture, "State", EVENTS_LOSSLESS, "b", NULL, json_pack("{s:s}", "text", text));
		turn(fixture);
	}
	free(text);
	assert_in_range(published, LIMIT_QUEUE_HARD_BYTES / 50100, LIMIT_QUEUE_HARD_BYTES / 50100 + 20);
	say(fixture, other, ASK);
	assert_hears(fixture, other, ASKED);
	close(fixture->log.fd);
	hang_up(end);
	hang_up(other);
}

static void a_stalled_reader_is_disconnected_after_half_a_minute(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	quiet(fixture);
	fill(fixture, end);
	skipped_s += LIMIT_STALL_MS / 1000 - 2;
	turn(fixture);
	assert_int_equal(fixture->gone_clients, 0);
	skipped_s += 3;
	turn(fixture);
	assert_int_equal(fixture->gone_clients, 1);
	close(fixture->log.fd);
	hang_up(end);
}

static void a_slow_reader_that_reads_a_little_is_kept(void **state)
{
	struct fixture *fixture = *state;
	struct peer_end *end = dial(fixture);
	fill(fixture, end);
	for (int i = 0; i < 5; i++) {
		skipped_s += LIMIT_STALL_MS / 1000 - 2;
		/* Far too little for the socket to become writable. */
		ssize_t len = recv(end->fd, end->bytes + end->used, 40000, 0);
		assert_true(len > 0);
		end->used += (size_t)len;
		turn(fixture);
	}
	assert_int_equal(fixture->gone_clients, 0);
	for (int i = 0; i < 20; i++) {
		free(hear_text(fixture, end));
	}
	say(fixture, end, ASK);
	assert_hears(fixture, end, ASKED);
	hang_up(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_half_closed_client_gets_the_replies_it_waits_for),
		DIALOGUE(a_half_closed_client_gets_its_events_to_the_end),
		DIALOGUE(who_hears_of_a_build_hears_of_the_end_of_a_capture_that_outlives_it),
		DIALOGUE(a_half_closed_client_may_be_subscribed_right_after_its_last_reply),
		DIALOGUE(a_half_closed_client_does_not_stay_for_a_build),
		DIALOGUE(a_half_closed_client_without_business_is_closed),
		DIALOGUE(a_last_line_without_line_end_is_told),
		DIALOGUE(a_half_closed_client_that_vanishes_is_noticed_at_once),
		DIALOGUE(a_waiting_client_that_vanishes_is_noticed_at_once),
		DIALOGUE(a_client_that_leaves_replies_unread_is_noticed_at_once),
		DIALOGUE(a_half_closed_or_idle_client_costs_no_wake_up),
		DIALOGUE(events_reach_subscribers_once_and_in_order_with_replies),
		DIALOGUE(an_event_that_fits_no_line_is_dropped),
		DIALOGUE(a_slow_reader_misses_output_only_and_learns_how_much),
		DIALOGUE(who_does_not_read_replies_is_not_read_either),
		DIALOGUE(who_vanishes_while_it_is_not_read_is_noticed),
		DIALOGUE(state_changes_that_nobody_reads_are_bounded),
		DIALOGUE(a_stalled_reader_is_disconnected_after_half_a_minute),
		DIALOGUE(a_slow_reader_that_reads_a_little_is_kept),
	};
	return cmocka_run_group_tests_name("server_clients", tests, NULL, NULL);
}
