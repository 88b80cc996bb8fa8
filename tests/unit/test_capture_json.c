#include "analyzer/export/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/export/summary.h"
#include "support/recorded.h"

enum { TEXT_CPU = 1, TEXT_MAIN, TEXT_BAD, TEXT_A, TEXT_START, TEXT_STITCHED, TEXT_CODE, TEXT_NOTE };

#define NATIVE JOURNAL_FRAME_NATIVE
#define PERIOD 1001001

struct fixture {
	struct recorded journal;
	struct strings *strings;
	struct model *model;
	struct symbols *symbols;
	struct attribution *attribution;
	json_t *facts, *warnings, *document;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct recorded *journal = &fixture->journal;

	fixture->strings = strings_create();
	recorded_begin(journal);
	recorded_metric(journal, 1, TEXT_CPU, PERIOD);
	recorded_text(journal, TEXT_MAIN, "main thread");
	recorded_text(journal, TEXT_BAD, "bad\xff");
	recorded_text(journal, TEXT_A, "/usr/lib/liba.so.1 (deleted)");
	recorded_text(journal, TEXT_START, "_start");
	recorded_text(journal, TEXT_STITCHED, "[stitched]");
	recorded_process(journal, 10, 1, TEXT_MAIN);
	recorded_thread(journal, 10, 10, TEXT_MAIN);
	recorded_thread(journal, 10, 11, TEXT_BAD);
	recorded_image(journal, 1, JOURNAL_IMAGE_ELF, TEXT_A);
	recorded_map(journal, 10, 0x1000, 0x1000, 0x4000, 1);
	recorded_add(journal, &(struct journal_record){.type = JOURNAL_FRAME,
							  .frame = {1, JOURNAL_FRAME_INTERPRETED, TEXT_START, 0, 0, 0}});
	recorded_add(journal, &(struct journal_record){.type = JOURNAL_FRAME,
							  .frame = {2, JOURNAL_FRAME_MARKER, TEXT_STITCHED, 0, 0, 0}});
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	json_decref(fixture->facts);
	json_decref(fixture->warnings);
	json_decref(fixture->document);
	attribution_destroy(fixture->attribution);
	symbols_destroy(fixture->symbols);
	model_destroy(fixture->model);
	strings_destroy(fixture->strings);
	recorded_finish(&fixture->journal);
	free(fixture);
	return 0;
}

/* One stack of process 10, and so many samples of it in its main thread and in the other one. */
static void sample(struct fixture *fixture, const struct recorded_frame *frames, size_t count,
	unsigned in_main, unsigned in_other)
{
	recorded_stack(&fixture->journal, 5, 10, JOURNAL_STACK_UNKNOWN, frames, count);
	recorded_samples(&fixture->journal, 10, 5, in_main);
	recorded_samples(&fixture->journal, 11, 5, in_other);
}

static struct json_input input_of(const struct fixture *fixture)
{
	return (struct json_input){
		.facts = fixture->facts,
		.model = fixture->model,
		.symbols = fixture->symbols,
		.strings = fixture->strings,
		.attribution = fixture->attribution,
		.warnings = fixture->warnings,
	};
}

static void attribute(struct fixture *fixture)
{
	recorded_seal(&fixture->journal);
	fixture->model = model_create(
		fixture->strings, fixture->journal.bytes.data, fixture->journal.bytes.len, NULL);
	assert_non_null(fixture->model);
	fixture->symbols = symbols_create(fixture->model, fixture->strings, true);
	assert_non_null(fixture->symbols);
	fixture->attribution =
		attribution_create(fixture->model, fixture->symbols, fixture->strings, NULL, NULL);
	assert_non_null(fixture->attribution);
	const struct json_input input = input_of(fixture);

	fixture->warnings = summary_warnings(&input);
	assert_non_null(fixture->warnings);
}

static json_t *written(struct fixture *fixture)
{
	struct buffer out = {0};

	attribute(fixture);
	const struct json_input input = input_of(fixture);

	assert_true(json_write(&out, &input));
	for (size_t i = 0; i < out.len; i++) {
		assert_true(out.data[i] < 0x80);
	}
	fixture->document = json_loadb((const char *)out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
	buffer_finish(&out);
	assert_non_null(fixture->document);
	return fixture->document;
}

/* "threads.1.name": members and indices. */
static json_t *at(json_t *value, const char *path)
{
	char copy[128];
	char *rest = NULL;

	strcpy(copy, path);
	for (char *step = strtok_r(copy, ".", &rest); step != NULL; step = strtok_r(NULL, ".", &rest)) {
		value = json_is_array(value) ? json_array_get(value, (size_t)atoi(step))
									 : json_object_get(value, step);
	}
	assert_non_null(value);
	return value;
}

static void assert_number(json_t *value, const char *path, long long expected)
{
	assert_true(json_is_integer(at(value, path)));
	assert_int_equal(json_integer_value(at(value, path)), expected);
}

static void assert_share(json_t *value, const char *path, double expected)
{
	assert_true(json_is_real(at(value, path)));
	assert_true(json_real_value(at(value, path)) == expected);
}

static void assert_string(json_t *value, const char *path, const char *expected)
{
	assert_string_equal(json_string_value(at(value, path)), expected);
}

static void copies_the_facts_and_accounts_for_every_sample(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	fixture->facts = json_pack("{s:s,s:{s:i},s:[{s:s}]}", "capture_id", "c1", "options", "hz", 999,
		"warnings", "code", "first");
	sample(fixture, leaf, 1, 30, 70);
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_LOSS, .loss = {1, JOURNAL_LOSS_RING, 7, 0, 0}});
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS,
										.loss = {1, JOURNAL_LOSS_THROTTLED, 2, 0, 0}});
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS,
										.loss = {1, JOURNAL_LOSS_THROTTLED, 0, 0, 50 * PERIOD}});
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_CPU_TIME,
										.cpu_time = {1, 10, 0, 200200200, 0, 0}});
	json_t *json = written(fixture);

	assert_string(json, "schema", "profd.capture");
	assert_number(json, "version", 1);
	assert_string(json, "capture_id", "c1");
	assert_number(json, "options.hz", 999);
	assert_number(json, "samples.count", 100);
	assert_number(json, "samples.lost", 7);
	assert_number(json, "samples.lost_by_cause.ring", 7);
	assert_number(json, "samples.throttled", 50);
	assert_number(json, "samples.throttle_events", 2);
	assert_number(json, "samples.period", PERIOD);
	assert_number(json, "samples.sampled_ns", 100ll * PERIOD);
	assert_number(json, "samples.cpu_time_ns", 200200200);
	assert_share(json, "samples.sampled_share", 0.5);
	assert_number(json, "samples.expected", 200);
	assert_number(json, "samples.not_permitted", 0);
	assert_number(json, "samples.too_short", 2); /* of two threads, each on one processor */
	assert_number(json, "samples.unexplained", 200 - 100 - 7 - 50 - 2);
	assert_non_null(
		strstr(json_string_value(at(json, "samples.hint")), "perf_event_max_sample_rate"));
	assert_string(json, "warnings.0.code", "first");
	assert_string(json, "system", "Linux 6.1");
	assert_null(json_object_get(fixture->facts, "samples")); /* the daemon's object is as it was */
}

static void lists_threads_and_images_by_their_samples(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {
		{0x1800, NATIVE}, {0x1805, NATIVE}, {0x9000, NATIVE}, {1, JOURNAL_FRAME_INTERPRETED}};

	sample(fixture, frames, 4, 30, 70);
	recorded_samples(&fixture->journal, 11, 0, 5);
	json_t *json = written(fixture);

	assert_number(json, "threads.0.tid", 11);
	assert_number(json, "threads.0.samples", 75);
	assert_string(json, "threads.0.name", "bad\xef\xbf\xbd");
	assert_string(json, "threads.0.name_b64", "YmFk/w==");
	assert_number(json, "threads.1.samples", 30);
	assert_int_equal(json_array_size(at(json, "images")), 1);
	assert_number(json, "images.0.samples", 100); /* a sample counts once, with two frames there */
	assert_number(json, "images.0.self", 100);
	assert_number(json, "images.0.frames", 200);
	assert_share(json, "images.0.share", 0.9524); /* of 105 */
	assert_number(json, "samples.elsewhere.no_stack", 5);
	assert_share(json, "images.0.unsymbolized", 1.0);
	assert_string(json, "images.0.symbols", "none");
	assert_string(json, "images.0.path", "/usr/lib/liba.so.1 (deleted)");
	assert_non_null(strstr(json_string_value(at(json, "images.0.fix")), "could not be opened"));
}

static void names_places_that_have_no_symbol(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {{0x1800, NATIVE}, {0x1805, NATIVE}, {0x9000, NATIVE},
		{0xffffffff81000000, JOURNAL_FRAME_KERNEL}};

	sample(fixture, frames, 4, 3, 0);
	json_t *json = written(fixture);

	assert_string(json, "functions.0.function", "[liba.so.1+0x4800]");
	assert_number(json, "functions.0.self", 3);
	assert_string(json, "functions.0.image", "liba.so.1");
	assert_string(json, "functions.1.function", "[kernel+0xffffffff81000000]");
	assert_true(json_is_true(at(json, "functions.1.kernel")));
	assert_string(
		json, "functions.2.function", "[liba.so.1+0x4805]"); /* its own place, not the call's */
	assert_string(json, "functions.3.function", "[unknown]");
	assert_string(json, "warnings.0.code", "kernel_symbols_hidden");
}

/* 100 samples: 40 complete, 10 that ended at _start, 20 at an unknown place, 25 cut, 5 of them stitched, 5 without a stack. */
static void tells_how_good_the_stacks_are(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {
		{0x1800, NATIVE}, {2, JOURNAL_FRAME_MARKER}, {1, JOURNAL_FRAME_INTERPRETED}};

	recorded_stack(&fixture->journal, 1, 10, JOURNAL_STACK_COMPLETE, frames, 1);
	recorded_stack(&fixture->journal, 2, 10, JOURNAL_STACK_UNKNOWN, frames, 3);
	recorded_stack(&fixture->journal, 3, 10, JOURNAL_STACK_UNKNOWN, frames, 1);
	recorded_stack(&fixture->journal, 4, 10, JOURNAL_STACK_DEPTH, frames, 1);
	recorded_stack(&fixture->journal, 5, 10, JOURNAL_STACK_BROKEN, frames, 2);
	recorded_samples(&fixture->journal, 10, 1, 40);
	recorded_samples(&fixture->journal, 10, 2, 10);
	recorded_samples(&fixture->journal, 10, 3, 20);
	recorded_samples(&fixture->journal, 10, 4, 20);
	recorded_samples(&fixture->journal, 10, 5, 5);
	recorded_samples(&fixture->journal, 10, 0, 5);
	json_t *json = written(fixture);

	assert_share(json, "quality.complete", 0.4);
	assert_share(json, "quality.stitched", 0.15);
	assert_share(json, "quality.truncated", 0.25);
	assert_share(json, "quality.unsymbolized", 1.0);
	assert_number(json, "stacks.ends.complete", 40);
	assert_number(json, "stacks.ends.unknown", 30);
	assert_number(json, "stacks.ends.none", 5);
	assert_number(json, "stacks.distinct", 5);
	assert_string(json, "warnings.0.code", "stacks_cut");
	assert_string(json, "warnings.1.code", "unsymbolized");
	/* Its stacks are told for what they are by what would help, the largest share first. */
	static const struct {
		const char *what, *help;
		double share;
		bool has_images;
	} remedies[] = {
		{"file_not_opened", "chmod", 1.0, true},
		{"depth_limit", "kernel.perf_event_max_stack", 0.2, false},
		{"end_unknown", "-fno-omit-frame-pointer", 0.2, true},
		{"no_stack", "kernel", 0.05, false},
	};
	json_t *list = at(json, "quality.remedies");

	assert_int_equal(json_array_size(list), 4);
	for (size_t i = 0; i < 4; i++) {
		json_t *remedy = json_array_get(list, i);

		assert_string(remedy, "what", remedies[i].what);
		assert_share(remedy, "share", remedies[i].share);
		assert_non_null(strstr(json_string_value(at(remedy, "hint")), remedies[i].help));
		assert_true(
			json_array_size(json_object_get(remedy, "images")) == (remedies[i].has_images ? 1 : 0));
	}
	assert_string(list, "0.images.0", "/usr/lib/liba.so.1 (deleted)");
	assert_non_null(strstr(json_string_value(at(list, "1.message")), "20.0 %"));
	/* The same of the file that 95 of them are in. */
	assert_number(json, "images.0.samples", 95);
	assert_share(json, "images.0.stacks.complete", 0.4211);
	assert_share(json, "images.0.stacks.stitched", 0.1579);
	assert_share(json, "images.0.stacks.truncated", 0.2105);
	assert_number(json, "images.0.stacks.broken_in", 0);
	assert_number(json, "images.0.stacks.no_rule_in", 0);
	assert_number(json, "images.0.stacks.unknown_in", 20);
	assert_non_null(
		strstr(json_string_value(at(json, "images.0.stacks.fix")), "-fno-omit-frame-pointer"));
}

/* Each kind of image gets the advice that helps it: a heap with code in it is no file, and the kernel's page cannot be built anew. */
static void advises_what_helps_each_image(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint64_t kind;
		const char *fix;
	} images[] = {
		{JOURNAL_IMAGE_ANONYMOUS, "--jitless"},
		{JOURNAL_IMAGE_UNKNOWN, "--jitless"},
		{JOURNAL_IMAGE_VDSO, NULL},
		{JOURNAL_IMAGE_ELF, "chmod a+r"},
	};

	for (unsigned i = 0; i < 4; i++) {
		const struct recorded_frame leaf[] = {{0x100000 * (i + 1), NATIVE}};

		recorded_image(&fixture->journal, 10 + i, images[i].kind, TEXT_MAIN);
		recorded_map(&fixture->journal, 10, leaf[0].value, 0x1000, 0, 10 + i);
		recorded_stack(&fixture->journal, 10 + i, 10, JOURNAL_STACK_COMPLETE, leaf, 1);
		recorded_samples(&fixture->journal, 10, 10 + i, 40 - i);
	}
	json_t *json = written(fixture);

	for (size_t i = 0; i < 4; i++) {
		json_t *fix = json_object_get(json_array_get(at(json, "images"), i), "fix");

		assert_true((fix == NULL) == (images[i].fix == NULL));
		assert_true(fix == NULL || strstr(json_string_value(fix), images[i].fix) != NULL);
	}
	assert_string(json, "quality.remedies.0.what", "generated_code");
	assert_share(json, "quality.remedies.0.share", 0.5130); /* (40 + 39) of 154 */
}

/* Who asked for a depth is told to ask for more; who did not, of the kernel's limit. */
static void knows_whose_limit_cut_the_stacks(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{1, JOURNAL_FRAME_INTERPRETED}};

	fixture->facts = json_pack("{s:{s:i}}", "options", "max_depth", 16);
	recorded_stack(&fixture->journal, 4, 10, JOURNAL_STACK_DEPTH, leaf, 1);
	recorded_samples(&fixture->journal, 10, 4, 99);
	json_t *json = written(fixture);

	assert_int_equal(json_array_size(at(json, "quality.remedies")), 1);
	assert_string(json, "quality.remedies.0.what", "depth_limit");
	assert_non_null(strstr(json_string_value(at(json, "quality.remedies.0.hint")), "max_depth"));
}

static void advises_nothing_when_nothing_is_missing(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {{1, JOURNAL_FRAME_INTERPRETED}};

	recorded_stack(&fixture->journal, 1, 10, JOURNAL_STACK_COMPLETE, frames, 1);
	recorded_samples(&fixture->journal, 10, 1, 300);
	recorded_samples(&fixture->journal, 10, 0, 2); /* less than a percent */
	json_t *json = written(fixture);

	assert_int_equal(json_array_size(at(json, "quality.remedies")), 0);
}

static void is_whole_without_a_sample(void **state)
{
	struct fixture *fixture = *state;
	json_t *json = written(fixture);

	assert_number(json, "samples.count", 0);
	assert_share(json, "quality.complete", 0.0);
	assert_int_equal(json_array_size(at(json, "images")), 0);
	assert_int_equal(json_array_size(at(json, "threads")), 2);
	assert_int_equal(json_array_size(at(json, "warnings")), 0);
}

static void is_whole_without_a_journal(void **state)
{
	struct fixture *fixture = *state;

	recorded_finish(&fixture->journal);
	json_t *json = written(fixture);

	assert_number(json, "samples.count", 0);
	assert_string(json, "samples.weight_unit", "unknown");
}

static void sums_up_in_few_and_short_words(void **state)
{
	struct fixture *fixture = *state;
	char text[4096];

	for (unsigned i = 0; i < 100; i++) {
		const struct recorded_frame leaf[] = {{100 + i, JOURNAL_FRAME_INTERPRETED}};

		memset(text, 1 + (int)i % 20, sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		text[0] = (char)('0' + i / 10);
		text[1] = (char)('0' + i % 10);
		recorded_text(&fixture->journal, 200 + i, text);
		recorded_add(&fixture->journal,
			&(struct journal_record){.type = JOURNAL_FRAME,
				.frame = {100 + i, JOURNAL_FRAME_INTERPRETED, 200 + i, 0, 0, 0}});
		recorded_stack(&fixture->journal, 100 + i, 10, 0, leaf, 1);
		recorded_samples(&fixture->journal, 10, 100 + i, 100 - i);
		recorded_add(&fixture->journal,
			&(struct journal_record){.type = JOURNAL_NOTE, .note = {200 + i, 200 + i}});
	}
	attribute(fixture);
	const struct json_input input = input_of(fixture);
	json_t *summary = summary_create(&input, 1234);
	json_t *both = json_pack("[O,o]", fixture->warnings, summary);
	char *dumped = json_dumps(both, JSON_ENSURE_ASCII | JSON_COMPACT);

	assert_number(summary, "duration_ms", 1234);
	assert_number(summary, "threads", 2);
	assert_int_equal(json_array_size(at(summary, "top")), SUMMARY_TOP);
	assert_number(summary, "top.0.self", 100);
	assert_number(summary, "top.9.self", 91);
	assert_true(json_is_array(at(summary, "images")));
	assert_int_equal(json_array_size(fixture->warnings), SUMMARY_MAX_WARNINGS);
	assert_in_range(strlen(dumped), 1, 100 * 1024);
	free(dumped);
	json_decref(both);
}

static void tells_of_damage_and_notes(void **state)
{
	struct fixture *fixture = *state;

	recorded_text(&fixture->journal, TEXT_CODE, "images_not_opened");
	recorded_text(&fixture->journal, TEXT_NOTE, "3 files could not be opened");
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_NOTE, .note = {TEXT_CODE, TEXT_NOTE}});
	recorded_samples(&fixture->journal, 10, 77, 2);
	recorded_seal(&fixture->journal);
	assert_true(buffer_text(&fixture->journal.bytes, "trash"));
	attribute(fixture);
	assert_int_equal(json_array_size(fixture->warnings), 3);
	assert_string(fixture->warnings, "0.code", "journal_damaged");
	assert_string(fixture->warnings, "1.code", "journal_contradictions");
	assert_string(fixture->warnings, "2.code", "images_not_opened");
	assert_string(fixture->warnings, "2.message", "3 files could not be opened");
}

static void gives_the_exact_bytes_of_a_name_that_is_no_text(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {{3, JOURNAL_FRAME_INTERPRETED}};

	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_FRAME,
							   .frame = {3, JOURNAL_FRAME_INTERPRETED, TEXT_BAD, 0, 0, 0}});
	sample(fixture, frames, 1, 3, 0);
	json_t *json = written(fixture);
	const struct json_input input = input_of(fixture);
	json_t *summary = summary_create(&input, 1);

	assert_string(json, "functions.0.function", "bad\xef\xbf\xbd");
	assert_string(json, "functions.0.function_b64", "YmFk/w==");
	assert_string(summary, "top.0.function", "bad\xef\xbf\xbd");
	assert_string(summary, "top.0.function_b64", "YmFk/w==");
	json_decref(summary);
}

/* 80 samples of 10 µs and 1 ms of CPU time. */
static void record_a_high_rate(
	struct fixture *fixture, bool kernel_sampled, uint64_t lost, uint64_t withheld_ns)
{
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	fixture->facts = json_pack("{s:{s:b}}", "effective", "kernel_sampled", kernel_sampled);
	recorded_metric(&fixture->journal, 1, TEXT_CPU, 10001);
	sample(fixture, leaf, 1, 80, 0);
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_CPU_TIME, .cpu_time = {1, 10, 0, 1000000, 0, 0}});
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS,
										.loss = {1, JOURNAL_LOSS_THROTTLED, 0, 0, withheld_ns}});
	if (lost > 0) {
		recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS,
											.loss = {1, JOURNAL_LOSS_RING, lost, 0, 0}});
	}
	attribute(fixture);
}

static bool has_warning(const struct fixture *fixture, const char *code)
{
	size_t index;
	json_t *warning;

	json_array_foreach(fixture->warnings, index, warning)
	{
		if (strcmp(json_string_value(json_object_get(warning, "code")), code) == 0) {
			return true;
		}
	}
	return false;
}

static void tells_that_the_rate_was_not_kept(void **state)
{
	struct fixture *fixture = *state;

	record_a_high_rate(fixture, true, 0, 0);
	assert_true(has_warning(fixture, "rate_not_kept"));
	assert_non_null(strstr(json_string_value(at(fixture->warnings, "0.message")), "20 %"));
}

static void blames_the_rate_for_nothing_that_is_explained(void **state)
{
	struct fixture *fixture = *state;

	record_a_high_rate(fixture, false, 0, 0);
	assert_false(has_warning(fixture, "rate_not_kept"));
	tear_down(state);
	set_up(state);
	fixture = *state;
	record_a_high_rate(fixture, true, 20, 0);
	assert_false(has_warning(fixture, "rate_not_kept"));
	assert_false(has_warning(fixture, "throttled"));
	tear_down(state);
	set_up(state);
	fixture = *state;
	record_a_high_rate(fixture, true, 0, 190000);
	assert_false(has_warning(fixture, "rate_not_kept"));
	assert_true(has_warning(fixture, "throttled"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(copies_the_facts_and_accounts_for_every_sample),
		CASE(lists_threads_and_images_by_their_samples),
		CASE(names_places_that_have_no_symbol),
		CASE(tells_how_good_the_stacks_are),
		CASE(advises_what_helps_each_image),
		CASE(knows_whose_limit_cut_the_stacks),
		CASE(advises_nothing_when_nothing_is_missing),
		CASE(is_whole_without_a_sample),
		CASE(is_whole_without_a_journal),
		CASE(sums_up_in_few_and_short_words),
		CASE(tells_of_damage_and_notes),
		CASE(gives_the_exact_bytes_of_a_name_that_is_no_text),
		CASE(tells_that_the_rate_was_not_kept),
		CASE(blames_the_rate_for_nothing_that_is_explained),
	};

	return cmocka_run_group_tests_name("capture_json", tests, NULL, NULL);
}
