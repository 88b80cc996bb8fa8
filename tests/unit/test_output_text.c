#include "commands/output_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "protocol/limits.h"
#include "protocol/text.h"

/* What a client of ProcessOutput would put together. */
struct heard {
	unsigned char bytes[65536];
	size_t len, texts, codes;
};

static unsigned digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(digits, c);
	assert_non_null(at);
	return (unsigned)(at - digits);
}

static void hear_base64(struct heard *heard, const char *text)
{
	for (; *text != '\0'; text += 4) {
		unsigned group = digit(text[0]) << 18 | digit(text[1]) << 12 |
						 (text[2] == '=' ? 0 : digit(text[2]) << 6) |
						 (text[3] == '=' ? 0 : digit(text[3]));
		heard->bytes[heard->len++] = (unsigned char)(group >> 16);
		if (text[2] != '=') {
			heard->bytes[heard->len++] = (unsigned char)(group >> 8);
		}
		if (text[3] != '=') {
			heard->bytes[heard->len++] = (unsigned char)group;
		}
	}
}

static void hear(void *context, uint64_t offset, json_t *piece)
{
	struct heard *heard = context;
	const json_t *data = json_object_get(piece, "data");
	assert_int_equal(offset, heard->len);
	assert_int_equal(json_object_size(piece), 1);
	size_t before = heard->len;
	if (data != NULL) {
		/* jansson itself says whether it is UTF-8 */
		json_t *again = json_stringn(json_string_value(data), json_string_length(data));
		assert_non_null(again);
		json_decref(again);
		memcpy(heard->bytes + heard->len, json_string_value(data), json_string_length(data));
		heard->len += json_string_length(data);
		heard->texts++;
	} else {
		hear_base64(heard, json_string_value(json_object_get(piece, "data_b64")));
		heard->codes++;
	}
	assert_true(heard->len > before && heard->len - before <= LIMIT_OUTPUT_EVENT_BYTES);
	json_decref(piece);
}

/* Feeds bytes in pieces of step bytes and compares what is heard. */
static struct heard *feed(const char *bytes, size_t len, size_t step)
{
	struct heard *heard = calloc(1, sizeof(*heard));
	struct output_text output = {0};
	for (size_t at = 0; at < len; at += step) {
		output_text_feed(&output, at, bytes + at, len - at < step ? len - at : step, hear, heard);
	}
	output_text_end(&output, hear, heard);
	assert_int_equal(heard->len, len);
	assert_memory_equal(heard->bytes, bytes, len);
	return heard;
}

static void output_keeps_characters_whole_however_it_is_cut(void **state)
{
	(void)state;
	char text[30000];
	size_t len = 0;
	while (len + 10 < sizeof(text)) {
		memcpy(text + len, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 10);
		len += 10;
	}
	const size_t steps[] = {1, 2, 3, 5, 7, 11, 4095, 4096, 8191, 8192, 8193, 30000};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct heard *heard = feed(text, len, steps[i]);
		assert_int_equal(heard->codes, 0);
		free(heard);
	}
}

static void output_that_is_no_text_arrives_byte_for_byte(void **state)
{
	(void)state;
	char bytes[20000];
	uint32_t random = 12345;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		random = random * 1664525 + 1013904223;
		bytes[i] = (char)(random >> 24);
	}
	for (size_t step = 1; step < 40; step += 3) {
		free(feed(bytes, 3000, step));
	}
	struct heard *heard = feed(bytes, sizeof(bytes), sizeof(bytes));
	assert_int_equal(heard->texts, 0);
	free(heard);
}

static void output_with_nul_is_not_sent_as_text(void **state)
{
	(void)state;
	struct heard *heard = feed("a\0b", 3, 3);
	assert_int_equal(heard->codes, 1);
	free(heard);
}

static void output_that_ends_within_a_character_loses_nothing(void **state)
{
	(void)state;
	struct heard *heard = feed("ok\xf0\x9f\x98", 5, 1);
	assert_int_equal(heard->codes, 1);
	assert_int_equal(heard->texts, 2);
	free(heard);
}

/* The answer's text or base64, and how many bytes it is of. */
static void answers(const char *bytes, size_t len, bool is_end, bool is_cut, size_t max,
	const char *member, size_t expected)
{
	size_t used = 99;
	json_t *answer = output_text_answer(bytes, len, is_end, is_cut, max, &used);
	assert_int_equal(json_object_size(answer), 1);
	const json_t *value = json_object_get(answer, member);
	assert_true(json_is_string(value));
	assert_int_equal(used, expected);
	char *base64 = text_base64(bytes, expected);
	if (strcmp(member, "data") == 0) {
		assert_int_equal(json_string_length(value), expected);
		assert_memory_equal(json_string_value(value), bytes, expected);
	} else {
		assert_string_equal(json_string_value(value), base64);
	}
	free(base64);
	json_decref(answer);
}

static void an_answer_is_text_without_half_a_character(void **state)
{
	(void)state;
	answers("", 0, true, false, 100, "data", 0);
	answers("abc", 3, false, false, 100, "data", 3);
	answers("ab\xe2\x82", 4, false, false, 100, "data", 2);
	answers("ab\xe2\x82", 4, false, true, 100, "data", 2);
	/* The rest of it has not come: ask again. It is there, but was not asked for: no text. */
	answers("\xe2\x82", 2, false, false, 100, "data", 0);
	answers("\xe2\x82", 2, false, true, 100, "data_b64", 2);
	/* Nothing will come. */
	answers("ab\xe2\x82", 4, true, false, 100, "data_b64", 4);
	answers("a\xff", 2, false, false, 100, "data_b64", 2);
	answers("\x82\xac", 2, false, false, 100, "data_b64", 2);
	answers("a\0b", 3, false, false, 100, "data_b64", 3);
}

static void an_answer_of_text_is_as_long_as_its_line_may_be(void **state)
{
	(void)state;
	static const char *const units[] = {"a", "\"", "\\", "\n", "\t", "\x1b", "\x7f", "/",
		"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "a\xf0\x9f\x98\x80\n"};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char text[4000];
		size_t len = 0, used = 0;
		while (len + 16 < sizeof(text)) {
			memcpy(text + len, units[i], strlen(units[i]));
			len += strlen(units[i]);
		}
		for (size_t max = 500; max < 520; max++) {
			json_t *answer = output_text_answer(text, len, false, false, max, &used);
			/* What the wire's writer really makes of it, without {"data":""}. */
			size_t bytes = json_dumpb(answer, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII) - 11;
			assert_true(bytes <= max && bytes + 12 > max);
			assert_true(text_is_utf8(text, used));
			json_decref(answer);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_keeps_characters_whole_however_it_is_cut),
		cmocka_unit_test(output_that_is_no_text_arrives_byte_for_byte),
		cmocka_unit_test(output_with_nul_is_not_sent_as_text),
		cmocka_unit_test(output_that_ends_within_a_character_loses_nothing),
		cmocka_unit_test(an_answer_is_text_without_half_a_character),
		cmocka_unit_test(an_answer_of_text_is_as_long_as_its_line_may_be),
	};
	return cmocka_run_group_tests_name("output_text", tests, NULL, NULL);
}
