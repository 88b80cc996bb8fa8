#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "protocol/message.h"

static void assert_refused(const char *text, size_t len, const char *reason)
{
	struct error err = {0};
	/* On the heap without a NUL: a read beyond the end is seen by the sanitizer. */
	char *bytes = malloc(len > 0 ? len : 1);
	assert_non_null(bytes);
	memcpy(bytes, text, len);
	json_t *value = message_parse(bytes, len, &err);
	free(bytes);
	assert_null(value);
	assert_int_equal(err.code, ERROR_PARSE);
	assert_non_null(strstr(err.message, reason));
}

static void refuses(const char *text, const char *reason)
{
	assert_refused(text, strlen(text), reason);
}

static void refuses_what_is_not_json(void **state)
{
	(void)state;
	refuses("{", "not a JSON object");
	refuses("hello", "not a JSON object");
	refuses("{\"a\":1,}", "not a JSON object");
	refuses("{}x", "at byte 3");
	refuses("{} {}", "end of file expected");
	refuses("{\"a\":1e400}", "real number overflow");
	refuses("{\"a\":\"\\ud800\"}", "not a JSON object");
	refuses("{\"a\":\"\xff\"}", "not a JSON object");
	refuses("{\"a\":\"\xed\xa0\x80\"}", "not a JSON object");
	refuses("{\"a\\u0000\":1}", "\\u0000 is not allowed in a name");
	refuses("\"\\", "not a JSON object");
	assert_refused("{\"a\":\0}", 7, "not a JSON object");
	assert_refused("{}\0", 3, "not a JSON object");
	assert_refused("", 0, "not a JSON object");
}

static void refuses_a_top_that_is_no_object_or_array(void **state)
{
	(void)state;
	refuses("1", "not a JSON object");
	refuses("\"a\"", "not a JSON object");
	refuses("null", "not a JSON object");
}

static void refuses_a_name_given_twice(void **state)
{
	(void)state;
	refuses("{\"a\":1,\"a\":2}", "duplicate object key");
}

static void says_where_without_quoting_the_input(void **state)
{
	(void)state;
	struct error err = {0};
	assert_null(message_parse("{\"a\": secret}", 13, &err));
	assert_null(strstr(err.message, "secret"));
	assert_non_null(strstr(err.message, "of 13"));
}

static void nest(char *text, size_t depth)
{
	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	text[2 * depth] = '\0';
}

static void nests_to_the_limit_and_not_deeper(void **state)
{
	(void)state;
	static char text[200001];
	struct error err = {0};
	nest(text, LIMIT_JSON_DEPTH);
	json_t *value = message_parse(text, strlen(text), &err);
	assert_non_null(value);
	json_decref(value);
	nest(text, LIMIT_JSON_DEPTH + 1);
	refuses(text, "nesting deeper than 32 levels at byte 32");
	nest(text, 100000);
	refuses(text, "nesting deeper");
}

static void brackets_in_strings_do_not_nest(void **state)
{
	(void)state;
	struct error err = {0};
	const char *text = "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\\\\\",\"b\":[1]}";
	json_t *value = message_parse(text, strlen(text), &err);
	assert_non_null(value);
	assert_int_equal(json_array_size(json_object_get(value, "b")), 1);
	json_decref(value);
}

/* So that whoever wanted another value can name the parameter, and the reply its request. */
static void keeps_what_only_its_reader_can_refuse(void **state)
{
	(void)state;
	struct error err = {0};
	const char *text = "{\"id\":7,\"nul\":\"a\\u0000b\",\"large\":18446744073709551616}";
	json_t *value = message_parse(text, strlen(text), &err);
	assert_non_null(value);
	assert_int_equal(json_string_length(json_object_get(value, "nul")), 3);
	assert_memory_equal(json_string_value(json_object_get(value, "nul")), "a\0b", 3);
	assert_true(json_real_value(json_object_get(value, "large")) == 18446744073709551616.0);
	assert_true(json_number_value(json_object_get(value, "id")) == 7);
	json_decref(value);
}

static void dumps_one_line_of_ascii(void **state)
{
	(void)state;
	size_t len = 0;
	json_t *value = json_pack("{s:s, s:i}", "text", "a\n\xe2\x80\xa8\xc3\xa9\x01", "n", 5);
	char *line = message_dump(value, &len);
	assert_non_null(line);
	assert_string_equal(line, "{\"text\":\"a\\n\\u2028\\u00E9\\u0001\",\"n\":5}\n");
	assert_int_equal(len, strlen(line));
	free(line);
	json_decref(value);
}

static void dumps_numbers_as_people_write_them(void **state)
{
	(void)state;
	size_t len = 0;
	json_t *value = json_pack("[f, f, I, I]", 0.1, 5.0, (json_int_t)LIMIT_INTEGER, (json_int_t)-7);
	char *line = message_dump(value, &len);
	assert_non_null(line);
	assert_string_equal(line, "[0.1,5.0,9007199254740992,-7]\n");
	free(line);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_not_json),
		cmocka_unit_test(refuses_a_top_that_is_no_object_or_array),
		cmocka_unit_test(refuses_a_name_given_twice),
		cmocka_unit_test(says_where_without_quoting_the_input),
		cmocka_unit_test(nests_to_the_limit_and_not_deeper),
		cmocka_unit_test(brackets_in_strings_do_not_nest),
		cmocka_unit_test(keeps_what_only_its_reader_can_refuse),
		cmocka_unit_test(dumps_one_line_of_ascii),
		cmocka_unit_test(dumps_numbers_as_people_write_them),
	};
	return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
