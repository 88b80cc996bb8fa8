#include "commands/params.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "commands/command.h"
#include "commands/signal_names.h"
#include "protocol/error.h"

static const char *const colours[] = {"red", "green", NULL};
static const char *const later_colours[] = {"blue", NULL};

static const struct param members[] = {
	{.name = "deep", .type = PARAM_INTEGER, .min = 1, .max = 3},
	{.name = NULL},
};

static const struct param table[] = {
	{.name = "must", .type = PARAM_BOOLEAN, .required = true},
	{.name = "number", .type = PARAM_INTEGER, .min = -5, .max = 10},
	{.name = "text", .type = PARAM_STRING, .min = 1, .max = 4},
	{.name = "id", .type = PARAM_ID},
	{.name = "list", .type = PARAM_STRINGS, .min = 1, .max = 2},
	{.name = "palette", .type = PARAM_STRINGS, .min = 1, .max = 2, .choices = colours},
	{.name = "colour", .type = PARAM_ENUM, .choices = colours, .later = later_colours},
	{.name = "signal", .type = PARAM_SIGNAL},
	{.name = "path", .type = PARAM_PATH},
	{.name = "inner", .type = PARAM_OBJECT, .members = members},
	{.name = "free", .type = PARAM_OBJECT},
	{.name = "options", .type = PARAM_OPTIONS, .members = members},
	{.name = "later", .type = PARAM_BOOLEAN, .is_unsupported = true, .fallback = "false"},
	{.name = NULL},
};

static const struct command sample = {.name = "Sample", .params = table};

/* The checked copy of must and what members says; NULL and err. */
static json_t *check(const char *members_text, struct error *err)
{
	char text[4096];
	snprintf(text, sizeof(text), "{\"must\":true%s%s}", members_text[0] == '\0' ? "" : ",",
		members_text);
	json_t *params = json_loads(text, JSON_ALLOW_NUL, NULL);
	assert_non_null(params);
	*err = (struct error){0};
	json_t *checked = command_check(&sample, params, err);
	json_decref(params);
	return checked;
}

static void take(const char *members_text)
{
	struct error err;
	json_t *checked = check(members_text, &err);
	if (checked == NULL) {
		fail_msg("%s was refused: %s", members_text, err.message);
	}
	json_decref(checked);
}

/* Refused with that code, and the message holds every one of the NULL-terminated words. */
static void refuse(enum error_code code, const char *members_text, ...)
{
	struct error err;
	json_t *checked = check(members_text, &err);
	if (checked != NULL) {
		fail_msg("%s was accepted", members_text);
	}
	assert_string_equal(error_code_name(err.code), error_code_name(code));
	va_list words;
	va_start(words, members_text);
	for (const char *word = va_arg(words, const char *); word != NULL;
		 word = va_arg(words, const char *)) {
		if (strstr(err.message, word) == NULL) {
			fail_msg("\"%s\" does not say \"%s\"", err.message, word);
		}
	}
	va_end(words);
}

static void an_unknown_parameter_is_refused_with_its_name(void **state)
{
	(void)state;
	refuse(ERROR_BAD_PARAMS, "\"nubmer\":1", "unknown", "\"nubmer\"", "Sample", NULL);
	refuse(ERROR_BAD_PARAMS, "\"inner\":{\"deeep\":1}", "\"inner.deeep\"", NULL);
	/* also one that is null, and one that no terminal should be shown */
	refuse(ERROR_BAD_PARAMS, "\"nubmer\":null", "\"nubmer\"", NULL);
	refuse(ERROR_BAD_PARAMS, "\"\\u001b[2J\":1", "\\u001B[2J", NULL);
}

static void an_unknown_parameter_is_told_before_a_wrong_value(void **state)
{
	(void)state;
	refuse(ERROR_BAD_PARAMS, "\"number\":99,\"nubmer\":1", "\"nubmer\"", NULL);
}

static void a_missing_parameter_is_named(void **state)
{
	(void)state;
	struct error err = {0};
	assert_null(command_check(&sample, NULL, &err));
	assert_int_equal(err.code, ERROR_BAD_PARAMS);
	assert_string_equal(err.detail, "missing_parameter");
	assert_non_null(strstr(err.message, "must"));
	/* null is as if left out */
	json_t *params = json_loads("{\"must\":null}", 0, NULL);
	assert_null(command_check(&sample, params, &err));
	assert_string_equal(err.detail, "missing_parameter");
	json_decref(params);
}

static void null_is_as_if_left_out(void **state)
{
	(void)state;
	struct error err;
	json_t *checked = check("\"number\":null,\"later\":null,\"inner\":{\"deep\":null}", &err);
	assert_non_null(checked);
	assert_int_equal(json_object_size(checked), 2);
	assert_int_equal(json_object_size(json_object_get(checked, "inner")), 0);
	assert_int_equal(command_integer(checked, "number", 77), 77);
	json_decref(checked);
}

static void the_values_asked_for_are_not_changed_in_place(void **state)
{
	(void)state;
	json_t *params = json_loads("{\"must\":true,\"number\":7.0,\"text\":null}", 0, NULL);
	struct error err = {0};
	json_t *checked = command_check(&sample, params, &err);
	assert_non_null(checked);
	assert_true(json_is_real(json_object_get(params, "number")));
	assert_true(json_is_null(json_object_get(params, "text")));
	assert_true(json_is_integer(json_object_get(checked, "number")));
	json_decref(checked);
	json_decref(params);
}

static void an_integer_keeps_to_its_range(void **state)
{
	(void)state;
	take("\"number\":-5");
	take("\"number\":10");
	take("\"number\":1e1");
	refuse(ERROR_BAD_PARAMS, "\"number\":-6", "number", "-6", "-5 to 10", NULL);
	refuse(ERROR_BAD_PARAMS, "\"number\":11", "number", "11", "-5 to 10", NULL);
	refuse(ERROR_BAD_PARAMS, "\"number\":1e300", "number", "1e+300", NULL);
	refuse(ERROR_BAD_PARAMS, "\"number\":0.5", "number", "0.5", "integer", NULL);
	refuse(ERROR_BAD_PARAMS, "\"number\":\"5\"", "number", "\"5\"", "integer", NULL);
	refuse(ERROR_BAD_PARAMS, "\"number\":true", "number", "true", NULL);
	refuse(ERROR_BAD_PARAMS, "\"inner\":{\"deep\":4}", "inner.deep is 4", "1 to 3", NULL);
}

static void options_are_an_object_or_true_for_none(void **state)
{
	(void)state;
	struct error err;
	json_t *checked = check("\"options\":true", &err);
	assert_non_null(checked);
	assert_true(json_is_object(json_object_get(checked, "options")));
	json_decref(checked);
	checked = check("\"options\":false", &err);
	assert_non_null(checked);
	assert_true(json_is_false(json_object_get(checked, "options")));
	json_decref(checked);
	take("\"options\":{\"deep\":3}");
	refuse(ERROR_BAD_PARAMS, "\"options\":{\"deep\":4}", "options.deep is 4", NULL);
	refuse(ERROR_BAD_PARAMS, "\"options\":{\"deeep\":4}", "\"options.deeep\"", NULL);
	refuse(ERROR_BAD_PARAMS, "\"options\":1", "options is 1", "true, false or an object", NULL);
}

static void a_string_keeps_to_its_length_and_holds_no_nul(void **state)
{
	(void)state;
	take("\"text\":\"abcd\"");
	refuse(ERROR_BAD_PARAMS, "\"text\":\"\"", "text", "1 to 4 bytes", NULL);
	refuse(ERROR_BAD_PARAMS, "\"text\":\"abcde\"", "text", "\"abcde\"", NULL);
	refuse(ERROR_BAD_PARAMS, "\"text\":\"a\\u0000b\"", "text", "\"a\\u0000b\"", "NUL", NULL);
	refuse(ERROR_BAD_PARAMS, "\"text\":[1,2]", "text", "an array of 2", NULL);
}

static void a_long_value_is_shown_cut_and_in_ascii(void **state)
{
	(void)state;
	char text[2048] = "\"number\":\"";
	for (int i = 0; i < 400; i++) {
		strcat(text, "\xe2\x82\xac");
	}
	strcat(text, "\"");
	struct error err;
	assert_null(check(text, &err));
	assert_true(strlen(err.message) < 200);
	for (const char *c = err.message; *c != '\0'; c++) {
		assert_true(*c >= ' ' && *c <= '~');
	}
}

static void an_id_is_a_short_string_or_an_exact_integer(void **state)
{
	(void)state;
	char text[256];
	take("\"id\":\"7\"");
	take("\"id\":7");
	take("\"id\":9007199254740992");
	refuse(ERROR_BAD_PARAMS, "\"id\":9007199254740993", "id", NULL);
	refuse(ERROR_BAD_PARAMS, "\"id\":\"\"", "id", "1 to 128 bytes", NULL);
	refuse(ERROR_BAD_PARAMS, "\"id\":{}", "id", "an object", NULL);
	snprintf(text, sizeof(text), "\"id\":\"%0129d\"", 0);
	refuse(ERROR_BAD_PARAMS, text, "id", NULL);
	snprintf(text, sizeof(text), "\"id\":\"%0128d\"", 0);
	take(text);
}

static void each_of_some_strings_is_checked(void **state)
{
	(void)state;
	take("\"list\":[\"\",\"b\"]");
	refuse(ERROR_BAD_PARAMS, "\"list\":[]", "list", "1 to 2", NULL);
	refuse(ERROR_BAD_PARAMS, "\"list\":[\"a\",\"b\",\"c\"]", "list", "an array of 3", NULL);
	refuse(ERROR_BAD_PARAMS, "\"list\":[\"a\",5]", "list[1]", "5", NULL);
	refuse(ERROR_BAD_PARAMS, "\"list\":[\"a\\u0000\"]", "list[0]", "NUL", NULL);
	take("\"palette\":[\"green\"]");
	refuse(ERROR_BAD_PARAMS, "\"palette\":[\"green\",\"pink\"]", "palette[1]", "\"pink\"",
		"\"red\"", NULL);
}

static void a_choice_of_the_contract_that_is_not_built_is_unsupported(void **state)
{
	(void)state;
	take("\"colour\":\"red\"");
	refuse(ERROR_UNSUPPORTED, "\"colour\":\"blue\"", "colour", "\"blue\"", NULL);
	refuse(ERROR_BAD_PARAMS, "\"colour\":\"pink\"", "colour", "\"pink\"", "\"red\"", "\"green\"",
		NULL);
	refuse(ERROR_BAD_PARAMS, "\"colour\":1", "colour", "1", "\"red\"", NULL);
	refuse(ERROR_UNSUPPORTED, "\"later\":true", "later", "true", NULL);
	refuse(ERROR_UNSUPPORTED, "\"later\":\"x\"", "later", "\"x\"", NULL);
	take("\"later\":false");
}

static void a_path_is_absolute(void **state)
{
	(void)state;
	take("\"path\":\"/\"");
	refuse(ERROR_BAD_PARAMS, "\"path\":\"a/b\"", "path", "\"a/b\"", "absolute", NULL);
	refuse(ERROR_BAD_PARAMS, "\"path\":\"\"", "path", "absolute", NULL);
	refuse(ERROR_BAD_PARAMS, "\"path\":\"/a\\u0000\"", "path", NULL);
}

static void a_signal_is_taken_by_both_names_and_by_number(void **state)
{
	(void)state;
	struct error err;
	const char *const spellings[] = {"\"TERM\"", "\"SIGTERM\"", "15", "15.0"};
	for (size_t i = 0; i < 4; i++) {
		char text[64];
		snprintf(text, sizeof(text), "\"signal\":%s", spellings[i]);
		json_t *checked = check(text, &err);
		assert_non_null(checked);
		assert_int_equal(command_signal(checked, "signal", 0), SIGTERM);
		json_decref(checked);
	}
	refuse(ERROR_BAD_PARAMS, "\"signal\":0", "signal", NULL);
	refuse(ERROR_BAD_PARAMS, "\"signal\":-9", "signal", NULL);
	refuse(ERROR_BAD_PARAMS, "\"signal\":65", "signal", "65", NULL);
	refuse(ERROR_BAD_PARAMS, "\"signal\":\"term\"", "signal", "\"term\"", NULL);
	refuse(ERROR_BAD_PARAMS, "\"signal\":\"TERM\\u0000\"", "signal", NULL);
}

/* The C library has a table of its own. */
static void signals_are_named_as_the_system_names_them(void **state)
{
	(void)state;
	char name[SIGNAL_NAME_BYTES], expected[32];
	for (int number = 1; number < 32; number++) {
		snprintf(expected, sizeof(expected), "SIG%s", sigabbrev_np(number));
		assert_string_equal(
			signal_name(number, name), strcmp(expected, "SIGPOLL") == 0 ? "SIGIO" : expected);
		json_t *text = json_string(name);
		assert_int_equal(signal_from_json(text), number);
		json_decref(text);
	}
	assert_string_equal(signal_name(SIGRTMIN + 3, name), "SIGRTMIN+3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_parameter_is_refused_with_its_name),
		cmocka_unit_test(an_unknown_parameter_is_told_before_a_wrong_value),
		cmocka_unit_test(a_missing_parameter_is_named),
		cmocka_unit_test(null_is_as_if_left_out),
		cmocka_unit_test(the_values_asked_for_are_not_changed_in_place),
		cmocka_unit_test(an_integer_keeps_to_its_range),
		cmocka_unit_test(options_are_an_object_or_true_for_none),
		cmocka_unit_test(a_string_keeps_to_its_length_and_holds_no_nul),
		cmocka_unit_test(a_long_value_is_shown_cut_and_in_ascii),
		cmocka_unit_test(an_id_is_a_short_string_or_an_exact_integer),
		cmocka_unit_test(each_of_some_strings_is_checked),
		cmocka_unit_test(a_choice_of_the_contract_that_is_not_built_is_unsupported),
		cmocka_unit_test(a_path_is_absolute),
		cmocka_unit_test(a_signal_is_taken_by_both_names_and_by_number),
		cmocka_unit_test(signals_are_named_as_the_system_names_them),
	};
	return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
