#include "commands/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "commands/page.h"
#include "commands/params.h"
#include "protocol/error.h"
#include "protocol/limits.h"

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
	refuse_call("StartSamplingProfile", "{\"mode\":\"wall\"}", ERROR_UNSUPPORTED, "mode \"wall\"");
	refuse_call(
		"StartSamplingProfile", "{\"scope\":\"tree\"}", ERROR_UNSUPPORTED, "scope \"tree\"");
	refuse_call(
		"StartSamplingProfile", "{\"select\":{\"name\":\"x\"}}", ERROR_UNSUPPORTED, "select");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_holds_the_contracts_methods),
		cmocka_unit_test(every_row_of_the_table_is_complete_and_its_default_valid),
		cmocka_unit_test(a_profile_is_checked_as_a_capture_is_without_a_target),
		cmocka_unit_test(what_is_not_built_yet_is_unsupported_by_name),
		cmocka_unit_test(a_page_is_never_longer_than_a_line),
		cmocka_unit_test(the_last_page_has_no_cursor),
	};
	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
