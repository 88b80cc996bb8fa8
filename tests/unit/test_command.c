#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "commands/command.h"
#include "commands/output_text.h"
#include "commands/page.h"
#include "commands/params.h"
#include "commands/signal_names.h"
#include "protocol/error.h"
#include "protocol/limits.h"

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

static void a_page_is_never_longer_than_a_line(void **state)
{
	(void)state;
	struct page page;
	page_init(&page, 100);
	size_t count = 0;
	/* each euro sign takes six bytes on the wire and three here */
	while (page_add(&page,
		json_pack("{s:s,s:i}", "text", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", "n", (int)count))) {
		count++;
	}
	json_t *result = page_finish(&page, "items", "next");
	assert_string_equal(json_string_value(json_object_get(result, "next_cursor")), "next");
	assert_int_equal(json_array_size(json_object_get(result, "items")), count);
	char *line = json_dumps(result, JSON_COMPACT | JSON_ENSURE_ASCII);
	assert_true(strlen(line) <= LIMIT_LINE_BYTES - 100);
	assert_true(strlen(line) > LIMIT_LINE_BYTES - 4096);
	free(line);
	json_decref(result);
}

static void the_last_page_has_no_cursor(void **state)
{
	(void)state;
	struct page page;
	page_init(&page, 0);
	assert_true(page_add(&page, json_integer(1)));
	json_t *result = page_finish(&page, "items", "next");
	assert_int_equal(json_object_size(result), 1);
	json_decref(result);
}

/* The methods of chapter 4 of the contract, in its order. */
static const char *const contract[] = {"Hello", "Ping", "GetStatus", "Describe", "Doctor",
	"Subscribe", "Unsubscribe", "Cancel", "Shutdown", "LaunchProcess", "AdoptProcess",
	"ResumeProcess", "StopProcess", "SignalProcess", "WriteStdin", "ResizePty", "GetOutput",
	"ListProcesses", "GetProcess", "StartSamplingProfile", "StartGpuTrace", "StopCapture",
	"WaitCapture", "SymbolizeCapture", "ListCaptures", "GetCapture", "DeleteCapture",
	"UpdateCapture", "QueryFrameTree", "QueryFunctions", "QueryCallers", "QueryLines",
	"QueryThreads", "QueryImages", "QueryTimeline", "DiffCaptures", "ExportCapture",
	"ImportCapture"};

static void the_table_holds_the_contracts_methods(void **state)
{
	(void)state;
	size_t count = sizeof(contract) / sizeof(contract[0]);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(commands[i]);
		assert_string_equal(commands[i]->name, contract[i]);
		assert_ptr_equal(command_find(contract[i]), commands[i]);
	}
	assert_null(commands[count]);
	assert_null(command_find("ping"));
	assert_null(command_find(""));
}

static void check_default(const struct command *command, const struct param *param)
{
	const struct param rows[] = {*param, {.name = NULL}};
	if (param->fallback == NULL) {
		return;
	}
	json_t *value = json_loads(param->fallback, JSON_DECODE_ANY, NULL);
	assert_non_null(value);
	json_t *params = json_pack("{s:o}", param->name, value);
	struct error err = {0};
	json_t *checked = params_check(rows, command->name, "", params, &err);
	if (checked == NULL) {
		fail_msg("%s: %s", command->name, err.message);
	}
	json_decref(checked);
	json_decref(params);
}

static void every_row_of_the_table_is_complete_and_its_default_valid(void **state)
{
	(void)state;
	for (size_t i = 0; commands[i] != NULL; i++) {
		const struct command *command = commands[i];
		assert_non_null(command->about);
		assert_true(command->run == NULL || command->result != NULL);
		for (const char *const *code = command->errors; code != NULL && *code != NULL; code++) {
			assert_true(error_code_from_name(*code) != ERROR_NONE);
		}
		const struct param *param = command->params;
		for (; param != NULL && param->name != NULL; param++) {
			assert_non_null(param->about);
			assert_true(param->type != PARAM_ENUM || param->choices != NULL);
			assert_true(param->min <= param->max || param->type == PARAM_STRING);
			check_default(command, param);
		}
	}
}

static void refuse_call(
	const char *method, const char *params_text, enum error_code code, const char *word)
{
	json_t *params = json_loads(params_text, 0, NULL);
	assert_non_null(params);
	struct error err = {0};
	json_t *checked = command_check(command_find(method), params, &err);
	if (checked != NULL) {
		fail_msg("%s %s was accepted", method, params_text);
	}
	assert_string_equal(error_code_name(err.code), error_code_name(code));
	if (strstr(err.message, word) == NULL) {
		fail_msg("\"%s\" does not say \"%s\"", err.message, word);
	}
	json_decref(params);
}

static void a_profile_is_checked_as_a_capture_is_without_a_target(void **state)
{
	(void)state;
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"profile\":{\"hz\":0}}", ERROR_BAD_PARAMS,
		"profile.hz is 0");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"profile\":{\"pid\":1}}", ERROR_BAD_PARAMS,
		"\"profile.pid\"");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"profile\":{\"mode\":\"wall\"}}",
		ERROR_UNSUPPORTED, "profile.mode \"wall\"");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"profile\":true}", ERROR_BAD_PARAMS,
		"profile is true");
}

static void what_is_not_built_yet_is_unsupported_by_name(void **state)
{
	(void)state;
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"gpu\":true}", ERROR_UNSUPPORTED, "gpu true");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"stdio\":\"pty\"}", ERROR_UNSUPPORTED,
		"stdio \"pty\"");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"on_daemon_exit\":\"leave\"}",
		ERROR_UNSUPPORTED, "\"leave\"");
	refuse_call("LaunchProcess", "{\"argv\":[\"a\"],\"request_key\":\"k\"}", ERROR_UNSUPPORTED,
		"request_key");
	refuse_call(
		"StartSamplingProfile", "{\"unwind\":\"dwarf\"}", ERROR_UNSUPPORTED, "unwind \"dwarf\"");
	refuse_call(
		"StartSamplingProfile", "{\"scope\":\"tree\"}", ERROR_UNSUPPORTED, "scope \"tree\"");
	refuse_call(
		"StartSamplingProfile", "{\"select\":{\"name\":\"x\"}}", ERROR_UNSUPPORTED, "select");
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
		cmocka_unit_test(a_string_keeps_to_its_length_and_holds_no_nul),
		cmocka_unit_test(a_long_value_is_shown_cut_and_in_ascii),
		cmocka_unit_test(an_id_is_a_short_string_or_an_exact_integer),
		cmocka_unit_test(each_of_some_strings_is_checked),
		cmocka_unit_test(a_choice_of_the_contract_that_is_not_built_is_unsupported),
		cmocka_unit_test(a_path_is_absolute),
		cmocka_unit_test(a_signal_is_taken_by_both_names_and_by_number),
		cmocka_unit_test(signals_are_named_as_the_system_names_them),
		cmocka_unit_test(output_keeps_characters_whole_however_it_is_cut),
		cmocka_unit_test(output_that_is_no_text_arrives_byte_for_byte),
		cmocka_unit_test(output_with_nul_is_not_sent_as_text),
		cmocka_unit_test(output_that_ends_within_a_character_loses_nothing),
		cmocka_unit_test(a_page_is_never_longer_than_a_line),
		cmocka_unit_test(the_last_page_has_no_cursor),
		cmocka_unit_test(the_table_holds_the_contracts_methods),
		cmocka_unit_test(every_row_of_the_table_is_complete_and_its_default_valid),
		cmocka_unit_test(a_profile_is_checked_as_a_capture_is_without_a_target),
		cmocka_unit_test(what_is_not_built_yet_is_unsupported_by_name),
	};
	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
