#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/error.h"
#include "protocol/text.h"

static void every_code_has_a_name_a_number_and_finds_itself_by_name(void **state)
{
	(void)state;
	for (int code = 1; code < ERROR_COUNT; code++) {
		const char *name = error_code_name((enum error_code)code);
		assert_true(strlen(name) > 1);
		assert_int_equal(error_code_from_name(name), code);
		assert_true(error_code_number((enum error_code)code) <= -32001);
	}
	assert_int_equal(error_code_from_name("no_such_code"), ERROR_NONE);
}

static void an_errno_becomes_a_code_a_detail_and_a_sentence(void **state)
{
	(void)state;
	struct error err = {0};
	errno = ENOSPC;
	assert_false(error_errno(&err, "write %s", "/a/b"));
	assert_int_equal(err.code, ERROR_DISK_FULL);
	assert_string_equal(err.detail, "enospc");
	assert_string_equal(err.message, "write /a/b: No space left on device");
	error_wrap(&err, "capture %d", 7);
	assert_string_equal(err.message, "capture 7: write /a/b: No space left on device");
	assert_int_equal(err.code, ERROR_DISK_FULL);
	error_errno_as(&err, ERROR_LAUNCH_FAILED, -ENOENT, "exec %s", "x");
	assert_int_equal(err.code, ERROR_LAUNCH_FAILED);
	assert_string_equal(err.detail, "enoent");
}

static void a_message_that_is_too_long_is_cut_between_characters(void **state)
{
	(void)state;
	struct error err = {0};
	char *path = malloc(2 * ERROR_MESSAGE_BYTES);
	size_t len = 0;
	for (; len < 2 * ERROR_MESSAGE_BYTES - 4; len += 3) {
		memcpy(path + len, "\xe2\x82\xac", 3); /* the euro sign */
	}
	path[len] = '\0';
	error_set(&err, ERROR_IO, "x%s", path);
	assert_true(strlen(err.message) > ERROR_MESSAGE_BYTES - 5);
	assert_true(text_is_utf8(err.message, strlen(err.message)));
	error_wrap(&err, "outer");
	assert_true(text_is_utf8(err.message, strlen(err.message)));
	free(path);
}

static void the_wire_form_carries_everything_and_reads_back(void **state)
{
	(void)state;
	struct error err = {0}, back = {0};
	error_set(&err, ERROR_CAPTURE_BUSY, "process 7 is sampled by capture %s", "c1");
	error_detail(&err, "same_process");
	json_t *object = error_to_json(&err);
	assert_int_equal(json_integer_value(json_object_get(object, "code")), -32001);
	json_t *data = json_object_get(object, "data");
	assert_string_equal(json_string_value(json_object_get(data, "code")), "capture_busy");
	assert_true(json_is_true(json_object_get(data, "retryable")));
	assert_string_equal(
		json_string_value(json_object_get(data, "hint")), error_code_hint(err.code));
	assert_true(error_from_json(&back, object));
	assert_int_equal(back.code, ERROR_CAPTURE_BUSY);
	assert_string_equal(back.message, err.message);
	assert_string_equal(back.detail, "same_process");
	json_decref(object);
	object = json_pack("{s:s}", "no", "message");
	assert_false(error_from_json(&back, object));
	json_decref(object);
}

static void text_refuses_what_rfc_3629_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82",
		"\xff"};
	static const char *const good[] = {"a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(text_is_utf8(bad[i], strlen(bad[i])));
		assert_null(json_string(bad[i])); /* jansson agrees */
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(text_is_utf8(good[i], strlen(good[i])));
		json_t *value = json_string(good[i]);
		assert_non_null(value);
		json_decref(value);
	}
}

static void text_knows_an_unfinished_character_at_the_end(void **state)
{
	(void)state;
	assert_int_equal(text_incomplete_tail("ab", 2), 0);
	assert_int_equal(text_incomplete_tail("a\xe2", 2), 1);
	assert_int_equal(text_incomplete_tail("a\xe2\x82", 3), 2);
	assert_int_equal(text_incomplete_tail("a\xe2\x82\xac", 4), 0);
	assert_int_equal(text_incomplete_tail("\xf0\x9f\x98", 3), 3);
	assert_int_equal(text_incomplete_tail("\x80\x80\x80\x80", 4), 0);
	assert_int_equal(text_incomplete_tail("", 0), 0);
}

static void broken_text_is_repaired_and_kept_exactly_in_base64(void **state)
{
	(void)state;
	json_t *object = json_object();
	assert_true(text_set(object, "path",
		"a\xff"
		"b",
		3));
	assert_string_equal(json_string_value(json_object_get(object, "path")), "a\xef\xbf\xbd"
																			"b");
	assert_string_equal(json_string_value(json_object_get(object, "path_b64")), "Yf9i");
	assert_true(text_set(object, "good", "caf\xc3\xa9", 5));
	assert_null(json_object_get(object, "good_b64"));
	assert_true(text_set(object, "nul", "a\0b", 3));
	assert_string_equal(json_string_value(json_object_get(object, "nul_b64")), "YQBi");
	json_decref(object);
	/* RFC 4648, section 10 */
	static const char *const vectors[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
		{"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		char *encoded = text_base64(vectors[i][0], strlen(vectors[i][0]));
		assert_string_equal(encoded, vectors[i][1]);
		free(encoded);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_name_a_number_and_finds_itself_by_name),
		cmocka_unit_test(an_errno_becomes_a_code_a_detail_and_a_sentence),
		cmocka_unit_test(a_message_that_is_too_long_is_cut_between_characters),
		cmocka_unit_test(the_wire_form_carries_everything_and_reads_back),
		cmocka_unit_test(text_refuses_what_rfc_3629_refuses),
		cmocka_unit_test(text_knows_an_unfinished_character_at_the_end),
		cmocka_unit_test(broken_text_is_repaired_and_kept_exactly_in_base64),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
