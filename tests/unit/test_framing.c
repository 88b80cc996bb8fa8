#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/framing.h"
#include "protocol/limits.h"

/* What a stream was cut into, as one text: "[message]" each, "<long>", "<headers>", "<broken>". */
struct outcome {
	char text[8192];
	size_t len;
};

static void note(struct outcome *outcome, const char *text, size_t len)
{
	assert_true(outcome->len + len < sizeof(outcome->text));
	memcpy(outcome->text + outcome->len, text, len);
	outcome->len += len;
	outcome->text[outcome->len] = '\0';
}

/* False once the stream has ended. */
static bool collect(struct framing *framing, struct outcome *outcome)
{
	for (;;) {
		const char *message = NULL;
		size_t len = 0;
		switch (framing_next(framing, &message, &len)) {
		case FRAMING_MORE:
			return true;
		case FRAMING_MESSAGE:
			note(outcome, "[", 1);
			note(outcome, message, len);
			note(outcome, "]", 1);
			break;
		case FRAMING_TOO_LONG:
			note(outcome, "<long>", 6);
			break;
		case FRAMING_BROKEN:
			note(outcome, "<broken>", 8);
			return false;
		}
	}
}

static void feed(struct framing *framing, const char *bytes, size_t len)
{
	size_t room = 0;
	char *to = framing_reserve(framing, len, &room);
	assert_non_null(to);
	assert_true(room >= len);
	memcpy(to, bytes, len);
	framing_fed(framing, len);
}

/* Feeds the stream in pieces of next_piece bytes. */
static struct outcome cut(
	const char *bytes, size_t len, size_t max_bytes, size_t (*next_piece)(size_t at))
{
	struct framing framing;
	struct outcome outcome = {0};
	framing_init(&framing, max_bytes);
	for (size_t at = 0; at < len;) {
		size_t piece = next_piece(at);
		piece = piece > len - at ? len - at : piece;
		feed(&framing, bytes + at, piece);
		if (!collect(&framing, &outcome)) {
			break;
		}
		at += piece;
	}
	framing_finish(&framing);
	return outcome;
}

static size_t whole(size_t at)
{
	(void)at;
	return SIZE_MAX;
}

static size_t single(size_t at)
{
	(void)at;
	return 1;
}

static size_t split_at;

static size_t two_pieces(size_t at)
{
	return at == 0 ? split_at : SIZE_MAX;
}

static size_t some(size_t at)
{
	(void)at;
	return (size_t)(rand() % 9) + 1;
}

static void assert_cut(const char *bytes, size_t max_bytes, const char *expected)
{
	struct outcome outcome = cut(bytes, strlen(bytes), max_bytes, whole);
	assert_string_equal(outcome.text, expected);
	outcome = cut(bytes, strlen(bytes), max_bytes, single);
	assert_string_equal(outcome.text, expected);
	for (split_at = 1; split_at < strlen(bytes); split_at++) {
		outcome = cut(bytes, strlen(bytes), max_bytes, two_pieces);
		assert_string_equal(outcome.text, expected);
	}
}

static void cuts_at_line_ends_of_both_kinds(void **state)
{
	(void)state;
	assert_cut("{}\n[1]\r\nx\n", 100, "[{}][[1]][x]");
}

static void skips_empty_lines(void **state)
{
	(void)state;
	assert_cut("\n\r\n\n{}\n\n\n{}\r\n", 100, "[{}][{}]");
}

static void keeps_an_unfinished_line_back(void **state)
{
	(void)state;
	assert_cut("{}\n{\"id\"", 100, "[{}]");
	struct framing framing;
	struct outcome outcome = {0};
	framing_init(&framing, 100);
	feed(&framing, "{}\n{\"id\"", 8);
	assert_true(collect(&framing, &outcome));
	assert_int_equal(framing_pending(&framing), 5);
	framing_finish(&framing);
}

static void a_carriage_return_inside_a_line_is_the_messages(void **state)
{
	(void)state;
	assert_cut("a\rb\n\r\r\n", 100, "[a\rb][\r]");
}

static void a_line_of_exactly_the_limit_is_a_message(void **state)
{
	(void)state;
	assert_cut("12345678\n12345678\r\nx\n", 8, "[12345678][12345678][x]");
}

static void a_line_one_byte_over_the_limit_is_reported_once_and_skipped(void **state)
{
	(void)state;
	assert_cut("a\n123456789\nb\n", 8, "[a]<long>[b]");
	assert_cut("123456789\r\nb\n", 8, "<long>[b]");
	assert_cut("123456789012345678901234567890\nb\n", 8, "<long>[b]");
	assert_cut("12345678\r\r\nb\n", 8, "<long>[b]");
}

static void sees_header_framing_in_the_first_line_only(void **state)
{
	(void)state;
	assert_cut("Content-Length: 2\r\n\r\n{}{}\n", 100, "[{}]<broken>");
	assert_cut("\nContent-Length: 2\n{}\n", 100, "[Content-Length: 2][{}]");
	assert_cut("{}\nContent-Length: 2\n", 100, "[{}][Content-Length: 2]");
	assert_cut("Content\n", 100, "[Content]");
	assert_cut("Content-Lengte:\n", 100, "[Content-Lengte:]");
}

static void reads_texts_by_their_length(void **state)
{
	(void)state;
	assert_cut("Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[\n]", 100, "[{}][[\n]]");
	assert_cut("content-length:2\n\n{}\r\nCONTENT-LENGTH: \t1 \n\n1", 100, "[{}][1]");
	assert_cut(
		"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}"
		"X-Other:\r\nContent-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n2",
		100, "[{}][][2]");
	assert_cut("Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 100, "[{}]");
	assert_cut("Content-Length: 3\r\n\r\n{}", 100, "");
	/* Skipped, and the next one is read. */
	assert_cut("Content-Length: 21\r\n\r\n123456789012345678901Content-Length: "
			   "20\r\n\r\n12345678901234567890",
		20, "<long>[12345678901234567890]");
}

static void breaks_at_headers_that_do_not_say_where_the_next_message_is(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"Content-Length:\r\n\r\n{}",
		"Content-Length: -2\r\n\r\n{}",
		"Content-Length: 2a\r\n\r\n{}",
		"Content-Length: 2 2\r\n\r\n{}",
		"Content-Length: 99999999999999999999999999999999999\r\n\r\n{}",
		"Content-Length: 18446744073709551618\r\n\r\n{}",
		"Content-Length: 8388609\r\n\r\n{}",
		"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"Content-Length: 2\r\nno field\r\n\r\n{}",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_cut(bad[i], 100, "<broken>");
	}
	assert_cut("Content-Length: 2\r\n\r\n{}Content-Type: x\r\n\r\n{}", 100, "[{}]<broken>");
	assert_cut("Content-Length: 2\r\n\r\n{}{\"id\":1}\n", 100, "[{}]<broken>");
}

static void breaks_at_headers_without_end(void **state)
{
	(void)state;
	char bytes[LIMIT_HEADER_BYTES + 100] = "Content-Length: 2\r\nX: ";
	size_t used = strlen(bytes);
	memset(bytes + used, 'a', sizeof(bytes) - used);
	struct outcome outcome = cut(bytes, sizeof(bytes), 100, whole);
	assert_string_equal(outcome.text, "<broken>");
	/* The limit is that of all header lines of a message, the last one's end included. */
	memcpy(bytes + LIMIT_HEADER_BYTES - 4, "\r\n\r\n{}", 6);
	outcome = cut(bytes, LIMIT_HEADER_BYTES + 2, 100, whole);
	assert_string_equal(outcome.text, "[{}]");
}

static void counts_what_is_missing_its_rest(void **state)
{
	(void)state;
	struct framing framing;
	struct outcome outcome = {0};
	framing_init(&framing, 100);
	feed(&framing, "Content-Length: 2\r\n", 19);
	assert_true(collect(&framing, &outcome));
	assert_int_equal(framing_pending(&framing), 19);
	feed(&framing, "\r\n{", 3);
	assert_true(collect(&framing, &outcome));
	assert_int_equal(framing_pending(&framing), 22);
	feed(&framing, "}", 1);
	assert_true(collect(&framing, &outcome));
	assert_int_equal(framing_pending(&framing), 0);
	assert_true(framing.has_headers);
	framing_finish(&framing);
}

static char *long_line(size_t len, const char *tail)
{
	char *bytes = malloc(len + strlen(tail) + 1);
	assert_non_null(bytes);
	memset(bytes, 'a', len);
	memcpy(bytes + len, tail, strlen(tail) + 1);
	return bytes;
}

static size_t pieces_of_64k(size_t at)
{
	(void)at;
	return 65536;
}

static void gives_up_on_a_line_without_end(void **state)
{
	(void)state;
	char *fine = long_line(LIMIT_SKIPPED_BYTES, "\nb\n");
	char *broken = long_line(LIMIT_SKIPPED_BYTES + 1, "\nb\n");
	struct outcome outcome = cut(fine, strlen(fine), 1000, pieces_of_64k);
	assert_string_equal(outcome.text, "<long>[b]");
	outcome = cut(fine, strlen(fine), 1000, whole);
	assert_string_equal(outcome.text, "<long>[b]");
	outcome = cut(broken, strlen(broken), 1000, pieces_of_64k);
	assert_string_equal(outcome.text, "<broken>");
	outcome = cut(broken, strlen(broken), 1000, whole);
	assert_string_equal(outcome.text, "<broken>");
	free(fine);
	free(broken);
}

static void stays_broken(void **state)
{
	(void)state;
	struct framing framing;
	const char *message = NULL;
	size_t len = 0;
	framing_init(&framing, 8);
	char *bytes = long_line(LIMIT_SKIPPED_BYTES + 1, "");
	feed(&framing, bytes, strlen(bytes));
	assert_int_equal(framing_next(&framing, &message, &len), FRAMING_BROKEN);
	feed(&framing, "\n{}\n", 4);
	assert_int_equal(framing_next(&framing, &message, &len), FRAMING_BROKEN);
	free(bytes);
	framing_finish(&framing);
}

static void keeps_no_more_than_a_line_in_memory(void **state)
{
	(void)state;
	struct framing framing;
	struct outcome outcome = {0};
	framing_init(&framing, 1000);
	char *bytes = long_line(4096, "");
	for (int i = 0; i < 1000; i++) {
		feed(&framing, bytes, 4096);
		assert_true(collect(&framing, &outcome));
		assert_true(framing.capacity <= 16384);
	}
	free(bytes);
	framing_finish(&framing);
}

/* The messages are known from how the stream was made, not from a first cut. */
static void any_split_gives_the_same_messages(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 2000; round++) {
		char bytes[1024];
		size_t len = 0;
		struct outcome expected = {0};
		for (int line = 0; line < 12; line++) {
			char text[32];
			size_t size = (size_t)rand() % 14;
			for (size_t i = 0; i < size; i++) {
				text[i] = (char)("abc\"{}\0\x80"[rand() % 8]);
			}
			memcpy(bytes + len, text, size);
			len += size;
			bool with_return = rand() % 3 == 0;
			memcpy(bytes + len, with_return ? "\r\n" : "\n", 2);
			len += with_return ? 2 : 1;
			if (size > 10) {
				note(&expected, "<long>", 6);
			} else if (size > 0) {
				note(&expected, "[", 1);
				note(&expected, text, size);
				note(&expected, "]", 1);
			}
		}
		struct outcome outcome = cut(bytes, len, 10, some);
		assert_int_equal(outcome.len, expected.len);
		assert_memory_equal(outcome.text, expected.text, expected.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_at_line_ends_of_both_kinds),
		cmocka_unit_test(skips_empty_lines),
		cmocka_unit_test(keeps_an_unfinished_line_back),
		cmocka_unit_test(a_carriage_return_inside_a_line_is_the_messages),
		cmocka_unit_test(a_line_of_exactly_the_limit_is_a_message),
		cmocka_unit_test(a_line_one_byte_over_the_limit_is_reported_once_and_skipped),
		cmocka_unit_test(sees_header_framing_in_the_first_line_only),
		cmocka_unit_test(reads_texts_by_their_length),
		cmocka_unit_test(breaks_at_headers_that_do_not_say_where_the_next_message_is),
		cmocka_unit_test(breaks_at_headers_without_end),
		cmocka_unit_test(counts_what_is_missing_its_rest),
		cmocka_unit_test(gives_up_on_a_line_without_end),
		cmocka_unit_test(stays_broken),
		cmocka_unit_test(keeps_no_more_than_a_line_in_memory),
		cmocka_unit_test(any_split_gives_the_same_messages),
	};
	return cmocka_run_group_tests_name("framing", tests, NULL, NULL);
}
