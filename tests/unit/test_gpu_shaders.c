#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gpu/layer/shaders.h"
#include "protocol/sha256.h"

#define POOL       7
#define USES_MAX   16
#define ALL        1000
#define MANY       3000 /* more than there are places in the tables */
#define CODE(text) (text), sizeof(text) - 1

/* Handles are only compared. */
static const char devices[2], buffers[MANY];
#define DEVICE    ((const void *)&devices[0])
#define OTHER     ((const void *)&devices[1])
#define BUFFER(i) ((const void *)&buffers[i])

/* What was used: "code:stage:entry ". */
struct found {
	char text[1024];
	size_t count, refuse; /* refuse: from which on */
};

static bool take(void *context, const struct shader_use *use)
{
	struct found *found = context;
	char hash[SHA256_HEX_BYTES];
	sha256_hex(use->code, use->bytes, hash);
	assert_string_equal(hash, use->hash);
	if (found->count >= found->refuse) {
		return false;
	}
	size_t len = strlen(found->text);
	found->count++;
	snprintf(found->text + len, sizeof(found->text) - len, "%.*s:%s:%s ", (int)use->bytes,
		(const char *)use->code, use->stage, use->entry);
	return true;
}

/* Uses come by hash: of "two" 3fc4…, of "one" 7692…, of "three" 8b5b…. */
static uint64_t look(struct shaders *shaders, struct found *found)
{
	*found = (struct found){.refuse = USES_MAX};
	return shaders_each_used(shaders, ALL, take, found);
}

static void expect(struct shaders *shaders, const char *wanted)
{
	struct found found;
	assert_int_equal(look(shaders, &found), 0);
	assert_string_equal(found.text, wanted);
}

static void make_module(struct shaders *shaders, uint64_t module, const char *code)
{
	shaders_module_made(shaders, DEVICE, module, code, strlen(code));
}

static void make_pipeline(struct shaders *shaders, uint64_t pipeline, uint64_t module,
	const char *stage, const char *entry)
{
	struct shader_stage made = {.module = module, .stage = stage, .entry = entry};
	shaders_pipeline_made(shaders, DEVICE, pipeline, &made, 1, NULL, 0);
}

/* Two modules, each with a pipeline: 11 and 12. Three command buffers. */
static int create(void **state)
{
	struct shaders *shaders = shaders_create();
	*state = shaders;
	if (shaders == NULL) {
		return 1;
	}
	make_module(shaders, 1, "one");
	make_module(shaders, 2, "two");
	make_pipeline(shaders, 11, 1, "compute", "main");
	make_pipeline(shaders, 12, 2, "vertex", "start");
	for (int i = 0; i < 3; i++) {
		shaders_allocated(shaders, DEVICE, POOL, BUFFER(i));
		shaders_begun(shaders, DEVICE, BUFFER(i));
	}
	return 0;
}

static int destroy(void **state)
{
	shaders_destroy(*state);
	return 0;
}

static void what_a_submitted_buffer_bound_was_used(void **state)
{
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_bound(*state, DEVICE, BUFFER(1), 12);
	shaders_bound(*state, DEVICE, BUFFER(0), 99);
	expect(*state, "");
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "one:compute:main ");
	shaders_used(*state, DEVICE, BUFFER(1));
	expect(*state, "two:vertex:start one:compute:main ");
	shaders_forget_used(*state);
	expect(*state, "");
	shaders_used(*state, DEVICE, BUFFER(1));
	expect(*state, "two:vertex:start ");
}

static void code_outlives_its_module_and_its_pipeline(void **state)
{
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_module_gone(*state, DEVICE, 1);
	make_module(*state, 1, "three");
	shaders_pipeline_gone(*state, DEVICE, 11);
	make_pipeline(*state, 11, 1, "compute", "other");
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "one:compute:main ");
	shaders_freed(*state, DEVICE, BUFFER(0));
	expect(*state, "one:compute:main ");
	shaders_device_gone(*state, DEVICE);
	expect(*state, "one:compute:main ");
}

static void a_new_recording_forgets_the_last(void **state)
{
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_begun(*state, DEVICE, BUFFER(0));
	shaders_bound(*state, DEVICE, BUFFER(0), 12);
	shaders_bound(*state, DEVICE, BUFFER(0), 12);
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "two:vertex:start ");
	shaders_forget_used(*state);
	shaders_begun(*state, DEVICE, BUFFER(0));
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_bound(*state, DEVICE, BUFFER(1), 11);
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "one:compute:main ");
}

static void secondary_buffers_count_for_those_that_execute_them(void **state)
{
	shaders_bound(*state, DEVICE, BUFFER(1), 11);
	shaders_bound(*state, DEVICE, BUFFER(2), 12);
	shaders_join(*state, DEVICE, BUFFER(1), BUFFER(2));
	shaders_join(*state, DEVICE, BUFFER(0), BUFFER(1));
	shaders_join(*state, DEVICE, BUFFER(0), BUFFER(0));
	shaders_begun(*state, DEVICE, BUFFER(1));
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "two:vertex:start one:compute:main ");
}

static void a_pool_takes_its_buffers_along(void **state)
{
	shaders_allocated(*state, DEVICE, POOL + 1, BUFFER(1));
	shaders_allocated(*state, OTHER, POOL, BUFFER(2));
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_bound(*state, DEVICE, BUFFER(1), 12);
	shaders_pool_gone(*state, DEVICE, POOL);
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "");
	shaders_used(*state, DEVICE, BUFFER(1));
	expect(*state, "two:vertex:start ");
}

static void equal_handles_of_two_devices_are_two(void **state)
{
	shaders_module_made(*state, OTHER, 1, CODE("three"));
	struct shader_stage stage = {.module = 1, .stage = "compute", .entry = "main"};
	shaders_pipeline_made(*state, OTHER, 11, &stage, 1, NULL, 0);
	shaders_allocated(*state, OTHER, POOL, BUFFER(5));
	shaders_bound(*state, OTHER, BUFFER(5), 11);
	shaders_device_gone(*state, DEVICE);
	shaders_used(*state, OTHER, BUFFER(5));
	expect(*state, "three:compute:main ");
}

static void equal_code_is_told_once_for_each_entry(void **state)
{
	make_module(*state, 3, "one");
	struct shader_stage stages[] = {{.module = 3, .stage = "compute", .entry = "main"},
		{.module = 1, .stage = "compute", .entry = "again"},
		{.code = "one", .bytes = 3, .stage = "compute", .entry = "again"},
		{.code = "two", .bytes = 3, .stage = "fragment", .entry = "main"},
		{.module = 77, .stage = "compute", .entry = "nowhere"},
		{.stage = "compute", .entry = "nothing"}};
	shaders_pipeline_made(*state, DEVICE, 13, stages, 6, NULL, 0);
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_bound(*state, DEVICE, BUFFER(0), 13);
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "two:fragment:main one:compute:again one:compute:main ");
}

static void a_pipeline_has_what_its_libraries_have(void **state)
{
	uint64_t libraries[] = {12, 99, 11};
	struct shader_stage stage = {
		.code = "three", .bytes = 5, .stage = "fragment", .entry = "paint"};
	shaders_pipeline_made(*state, DEVICE, 13, &stage, 1, libraries, 3);
	shaders_pipeline_gone(*state, DEVICE, 11);
	shaders_pipeline_gone(*state, DEVICE, 12);
	shaders_bound(*state, DEVICE, BUFFER(0), 13);
	shaders_used(*state, DEVICE, BUFFER(0));
	expect(*state, "two:vertex:start one:compute:main three:fragment:paint ");
}

static void what_is_above_the_limits_is_left_out_and_counted(void **state)
{
	size_t large = SHADERS_MODULE_BYTES + 1;
	char *bytes = calloc(1, large);
	struct found found;
	assert_non_null(bytes);
	/* Module 3 is too large, 4 to 6 are not, there is no room for 7. */
	for (uint64_t module = 3; module <= 7; module++) {
		memset(bytes, 'a' + (int)module, 4);
		shaders_module_made(
			*state, DEVICE, module, bytes, module == 3 ? large : SHADERS_MODULE_BYTES);
		make_pipeline(*state, module + 10, module, "compute", "main");
		make_pipeline(*state, module + 20, module, "compute", "again");
		shaders_bound(*state, DEVICE, BUFFER(0), module + 10);
		shaders_bound(*state, DEVICE, BUFFER(0), module + 20);
	}
	shaders_used(*state, DEVICE, BUFFER(0));
	assert_int_equal(look(*state, &found), 2);
	assert_int_equal(found.count, 6);
	/* Room is there again once nothing uses what took it. */
	shaders_forget_used(*state);
	shaders_begun(*state, DEVICE, BUFFER(0));
	shaders_pipeline_gone(*state, DEVICE, 14);
	shaders_pipeline_gone(*state, DEVICE, 24);
	shaders_module_gone(*state, DEVICE, 4);
	shaders_module_made(*state, DEVICE, 8, bytes, SHADERS_MODULE_BYTES);
	make_pipeline(*state, 18, 8, "compute", "main");
	shaders_bound(*state, DEVICE, BUFFER(0), 18);
	shaders_used(*state, DEVICE, BUFFER(0));
	assert_int_equal(look(*state, &found), 0);
	free(bytes);
}

static void what_is_not_taken_is_counted_by_modules(void **state)
{
	struct found found = {.refuse = 1};
	make_pipeline(*state, 13, 2, "fragment", "end");
	for (uint64_t pipeline = 11; pipeline <= 13; pipeline++) {
		shaders_bound(*state, DEVICE, BUFFER(0), pipeline);
	}
	shaders_used(*state, DEVICE, BUFFER(0));
	assert_int_equal(shaders_each_used(*state, ALL, take, &found), 1);
	assert_string_equal(found.text, "two:fragment:end ");
	found = (struct found){.refuse = USES_MAX};
	assert_int_equal(shaders_each_used(*state, 2, take, &found), 1);
	assert_string_equal(found.text, "two:fragment:end two:vertex:start ");
}

static void *ask(void *shaders)
{
	return shaders_are_free(shaders, 50) ? shaders : NULL;
}

static bool ask_elsewhere(void *context, const struct shader_use *use)
{
	pthread_t thread;
	void *answer;
	(void)use;
	assert_int_equal(pthread_create(&thread, NULL, ask, context), 0);
	assert_int_equal(pthread_join(thread, &answer), 0);
	assert_null(answer);
	return true;
}

static void work_that_does_not_end_is_seen_from_elsewhere(void **state)
{
	shaders_bound(*state, DEVICE, BUFFER(0), 11);
	shaders_used(*state, DEVICE, BUFFER(0));
	assert_int_equal(shaders_each_used(*state, ALL, ask_elsewhere, *state), 0);
	assert_true(shaders_are_free(*state, 0));
}

static void many_are_told_apart(void **state)
{
	char code[16];
	struct found found;
	for (uint64_t i = 0; i < MANY; i++) {
		snprintf(code, sizeof(code), "code %d", (int)i);
		make_module(*state, 100 + i, code);
		make_pipeline(*state, 100 + i, 100 + i, "compute", "main");
		shaders_module_gone(*state, DEVICE, 100 + i);
		shaders_allocated(*state, DEVICE, POOL, BUFFER(i));
		shaders_bound(*state, DEVICE, BUFFER(i), 100 + i);
	}
	shaders_used(*state, DEVICE, BUFFER(1234));
	assert_int_equal(look(*state, &found), 0);
	assert_string_equal(found.text, "code 1234:compute:main ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_submitted_buffer_bound_was_used, create, destroy),
		cmocka_unit_test_setup_teardown(code_outlives_its_module_and_its_pipeline, create, destroy),
		cmocka_unit_test_setup_teardown(a_new_recording_forgets_the_last, create, destroy),
		cmocka_unit_test_setup_teardown(
			secondary_buffers_count_for_those_that_execute_them, create, destroy),
		cmocka_unit_test_setup_teardown(a_pool_takes_its_buffers_along, create, destroy),
		cmocka_unit_test_setup_teardown(equal_handles_of_two_devices_are_two, create, destroy),
		cmocka_unit_test_setup_teardown(equal_code_is_told_once_for_each_entry, create, destroy),
		cmocka_unit_test_setup_teardown(a_pipeline_has_what_its_libraries_have, create, destroy),
		cmocka_unit_test_setup_teardown(
			what_is_above_the_limits_is_left_out_and_counted, create, destroy),
		cmocka_unit_test_setup_teardown(what_is_not_taken_is_counted_by_modules, create, destroy),
		cmocka_unit_test_setup_teardown(
			work_that_does_not_end_is_seen_from_elsewhere, create, destroy),
		cmocka_unit_test_setup_teardown(many_are_told_apart, create, destroy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
