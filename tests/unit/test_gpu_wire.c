#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/gpu_wire.h"

static bool parse(const char *text, struct gpu_wire_message *message)
{
	static char copy[2 * GPU_WIRE_LINE_BYTES];
	size_t len = strlen(text);
	memcpy(copy, text, len + 1);
	return gpu_wire_parse(copy, len, message);
}

static void writes_lines_as_the_contract_has_them(void **state)
{
	(void)state;
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "document");
	gpu_wire_text(&line, "path", "/tmp/a b/\xc3\xa9%=\n.rdc");
	gpu_wire_number(&line, "bytes", UINT64_MAX);
	gpu_wire_number(&line, "first", 0);
	gpu_wire_text(&line, "empty", "");
	assert_true(gpu_wire_end(&line));
	static const char expected[] = "document path=/tmp/a%20b/%C3%A9%25%3D%0A.rdc "
								   "bytes=18446744073709551615 first=0 empty=\n";
	assert_int_equal(line.len, sizeof(expected) - 1);
	assert_memory_equal(line.text, expected, line.len);
}

static void escapes_every_byte_but_the_plain_ones(void **state)
{
	(void)state;
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:+,-";
	for (int byte = 1; byte < 256; byte++) {
		char value[2] = {(char)byte, '\0'}, expected[16];
		struct gpu_wire_line line;
		struct gpu_wire_message message;
		gpu_wire_begin(&line, "w");
		gpu_wire_text(&line, "k", value);
		assert_true(gpu_wire_end(&line));
		snprintf(expected, sizeof(expected),
			strchr(plain, byte) != NULL ? "w k=%c\n" : "w k=%%%02X\n", byte);
		assert_int_equal(line.len, strlen(expected));
		assert_memory_equal(line.text, expected, line.len);
		assert_true(gpu_wire_parse(line.text, line.len - 1, &message));
		assert_string_equal(gpu_wire_get(&message, "k"), value);
	}
}

static void a_line_that_does_not_fit_is_none(void **state)
{
	(void)state;
	static char value[GPU_WIRE_LINE_BYTES];
	struct gpu_wire_line line;
	memset(value, 'x', sizeof(value) - 1);
	size_t most = GPU_WIRE_LINE_BYTES - strlen("w k=") - 1;
	for (size_t len = most - 1; len <= most + 1; len++) {
		value[len] = '\0';
		gpu_wire_begin(&line, "w");
		gpu_wire_text(&line, "k", value);
		assert_int_equal(gpu_wire_end(&line), len <= most);
		value[len] = 'x';
	}
	assert_true(line.is_full);
}

static void the_longest_names_fit_their_lines(void **state)
{
	(void)state;
	static char path[GPU_WIRE_PATH_BYTES], name[GPU_WIRE_NAME_BYTES], text[GPU_WIRE_TEXT_BYTES];
	static char label[GPU_WIRE_LABEL_BYTES];
	memset(path, 0xff, sizeof(path) - 1);
	memset(name, 0xff, sizeof(name) - 1);
	memset(text, 0xff, sizeof(text) - 1);
	memset(label, 0xff, sizeof(label) - 1);
	struct gpu_wire_line line;
	gpu_wire_begin(&line, "hello");
	gpu_wire_text(&line, "token", "0123456789abcdef0123456789abcdef");
	gpu_wire_text(&line, "exe", name);
	gpu_wire_text(&line, "renderdoc", name);
	gpu_wire_number(&line, "pid", UINT64_MAX);
	gpu_wire_number(&line, "ppid", UINT64_MAX);
	gpu_wire_text(&line, "rest", "api=vulkan order=above renderdoc_api=1.6.0, and some more");
	assert_true(gpu_wire_end(&line));
	gpu_wire_begin(&line, "start");
	gpu_wire_text(&line, "label", label);
	gpu_wire_number(&line, "first", UINT64_MAX);
	gpu_wire_number(&line, "last", UINT64_MAX);
	gpu_wire_text(&line, "template", path);
	assert_true(gpu_wire_end(&line));
	gpu_wire_begin(&line, "fault");
	gpu_wire_text(&line, "code", "output_not_writable");
	gpu_wire_text(&line, "text", text);
	assert_true(gpu_wire_end(&line));
}

static void reads_what_was_escaped_and_what_was_not(void **state)
{
	(void)state;
	struct gpu_wire_message message;
	assert_true(parse("start by=label label=frame%20 first=2 last=%33 empty=", &message));
	assert_string_equal(message.word, "start");
	assert_int_equal(message.count, 5);
	assert_string_equal(gpu_wire_get(&message, "label"), "frame ");
	assert_string_equal(gpu_wire_get(&message, "last"), "3");
	assert_string_equal(gpu_wire_get(&message, "empty"), "");
	assert_null(gpu_wire_get(&message, "firs"));
	assert_true(parse("stop", &message));
	assert_int_equal(message.count, 0);
}

static void refuses_what_is_no_line(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", " ", " stop", "stop ", "stop  a=1", "Stop", "stop\r",
		"stop a", "stop =1", "stop a=1 a=2", "stop a=b=c", "stop a=%", "stop a=%4", "stop a=%4g",
		"stop a=%00", "stop a=\x7f", "stop a=\xc3\xa9", "stop a=\"b\"", "stop\ta=1", "stop a=1 b",
		"stop a.b=1", "w a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1"};
	struct gpu_wire_message message;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (parse(wrong[i], &message)) {
			fail_msg("taken: '%s'", wrong[i]);
		}
	}
	char zero[] = "stop a=1\0 b=2";
	assert_false(gpu_wire_parse(zero, sizeof(zero) - 1, &message));
	assert_true(parse("w a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1", &message));
}

static void numbers_are_decimal_and_fit(void **state)
{
	(void)state;
	struct gpu_wire_message message;
	uint64_t value = 7;
	assert_true(
		parse("w a=18446744073709551615 b=18446744073709551616 c= d=-1 e=+1 f=0x1 g=1.0 h=007 "
			  "i=99999999999999999999999",
			&message));
	static const char *const wrong[] = {"b", "c", "d", "e", "f", "g", "i", "absent"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(gpu_wire_get_number(&message, wrong[i], &value));
		assert_int_equal(value, 7);
	}
	assert_true(gpu_wire_get_number(&message, "a", &value));
	assert_true(value == UINT64_MAX);
	assert_true(gpu_wire_get_number(&message, "h", &value));
	assert_int_equal(value, 7);
}

static void feed(struct gpu_wire_input *input, const char *bytes, size_t len)
{
	size_t room;
	char *to = gpu_wire_room(input, &room);
	assert_true(len <= room);
	memcpy(to, bytes, len);
	gpu_wire_filled(input, len);
}

static void lines_come_in_any_pieces(void **state)
{
	(void)state;
	static const char stream[] = "status\nstart by=auto next=2 template=/t\nstop\n";
	static const char *const words[] = {"status", "start", "stop"};
	for (size_t piece = 1; piece < sizeof(stream); piece++) {
		struct gpu_wire_input input = {0};
		struct gpu_wire_message message;
		size_t count = 0;
		for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
			size_t left = sizeof(stream) - 1 - at;
			feed(&input, stream + at, left < piece ? left : piece);
			while (gpu_wire_next(&input, &message) == GPU_WIRE_MESSAGE) {
				assert_string_equal(message.word, words[count++]);
			}
		}
		assert_int_equal(count, 3);
		assert_int_equal(gpu_wire_next(&input, &message), GPU_WIRE_NOTHING);
	}
}

static void a_line_without_end_is_garbled_at_the_limit(void **state)
{
	(void)state;
	struct gpu_wire_input input = {0};
	struct gpu_wire_message message;
	static char endless[GPU_WIRE_LINE_BYTES];
	memset(endless, 'x', sizeof(endless));
	feed(&input, endless, sizeof(endless) - 1);
	assert_int_equal(gpu_wire_next(&input, &message), GPU_WIRE_NOTHING);
	feed(&input, endless, 1);
	assert_int_equal(gpu_wire_next(&input, &message), GPU_WIRE_GARBLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_lines_as_the_contract_has_them),
		cmocka_unit_test(escapes_every_byte_but_the_plain_ones),
		cmocka_unit_test(a_line_that_does_not_fit_is_none),
		cmocka_unit_test(the_longest_names_fit_their_lines),
		cmocka_unit_test(reads_what_was_escaped_and_what_was_not),
		cmocka_unit_test(refuses_what_is_no_line),
		cmocka_unit_test(numbers_are_decimal_and_fit),
		cmocka_unit_test(lines_come_in_any_pieces),
		cmocka_unit_test(a_line_without_end_is_garbled_at_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
