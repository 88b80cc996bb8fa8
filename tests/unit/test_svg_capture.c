#include "analyzer/export/svg_capture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/recorded.h"

enum { TEXT_CPU = 1, TEXT_ONE, TEXT_TWO, TEXT_PROGRAM, TEXT_LIBRARY };
enum { IMAGE_PROGRAM = 1, IMAGE_LIBRARY };

/* Two threads, of 1,500 and 500 samples at 1,000 Hz, 100 of them in a stack that was cut; the document, as text. */
struct fixture {
	struct recorded journal;
	struct strings *strings;
	struct model *model;
	struct symbols *symbols;
	struct attribution *attribution;
	json_t *facts;
	struct buffer svg;
};

static void add_stacks(struct recorded *journal)
{
	const struct recorded_frame frames[] = {
		{0x20010, JOURNAL_FRAME_EXACT}, {0x10020, JOURNAL_FRAME_EXACT}};

	recorded_stack(journal, 1, 10, JOURNAL_STACK_COMPLETE, frames, 2);
	recorded_stack(journal, 2, 10, JOURNAL_STACK_DEPTH, frames + 1, 1);
	recorded_samples(journal, 10, 1, 1400);
	recorded_samples(journal, 10, 2, 100);
	recorded_samples(journal, 11, 1, 500);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct recorded *journal = &fixture->journal;

	fixture->strings = strings_create();
	recorded_begin(journal);
	recorded_metric(journal, 1, TEXT_CPU, 1000000);
	recorded_text(journal, TEXT_ONE, "one");
	recorded_text(journal, TEXT_TWO, "two");
	recorded_text(journal, TEXT_PROGRAM, "/bin/program");
	recorded_text(journal, TEXT_LIBRARY, "/lib/library.so");
	recorded_image(journal, IMAGE_PROGRAM, JOURNAL_IMAGE_ELF, TEXT_PROGRAM);
	recorded_image(journal, IMAGE_LIBRARY, JOURNAL_IMAGE_ELF, TEXT_LIBRARY);
	recorded_process(journal, 10, 1, TEXT_ONE);
	recorded_thread(journal, 10, 10, TEXT_ONE);
	recorded_thread(journal, 10, 11, TEXT_TWO);
	recorded_map(journal, 10, 0x10000, 0x1000, 0, IMAGE_PROGRAM);
	recorded_map(journal, 10, 0x20000, 0x1000, 0, IMAGE_LIBRARY);
	add_stacks(journal);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	attribution_destroy(fixture->attribution);
	symbols_destroy(fixture->symbols);
	model_destroy(fixture->model);
	strings_destroy(fixture->strings);
	recorded_finish(&fixture->journal);
	json_decref(fixture->facts);
	buffer_finish(&fixture->svg);
	free(fixture);
	return 0;
}

/* facts: JSON text, with ' for ". */
static void draw(struct fixture *fixture, const char *facts)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s", facts);
	for (char *quote = text; (quote = strchr(quote, '\'')) != NULL;) {
		*quote = '"';
	}
	fixture->facts = json_loads(text, 0, NULL);
	assert_non_null(fixture->facts);
	recorded_seal(&fixture->journal);
	fixture->model = model_create(
		fixture->strings, fixture->journal.bytes.data, fixture->journal.bytes.len, NULL);
	fixture->symbols = symbols_create(fixture->model, fixture->strings, false);
	fixture->attribution =
		attribution_create(fixture->model, fixture->symbols, fixture->strings, NULL, NULL);
	const struct svg_capture capture = {fixture->facts, fixture->model, fixture->attribution, 3010};

	assert_true(svg_capture_write(&fixture->svg, &capture));
	assert_true(buffer_byte(&fixture->svg, 0));
}

static void assert_holds(const struct fixture *fixture, const char *text)
{
	if (strstr((const char *)fixture->svg.data, text) == NULL) {
		fail_msg("not in the document: %s", text);
	}
}

static void assert_lacks(const struct fixture *fixture, const char *text)
{
	if (strstr((const char *)fixture->svg.data, text) != NULL) {
		fail_msg("in the document: %s", text);
	}
}

static void tells_program_rate_duration_and_samples(void **state)
{
	struct fixture *fixture = *state;

	draw(
		fixture, "{'target':{'pid':4711,'argv':['/usr/bin/program','-x']},'effective':{'hz':999}}");
	assert_holds(fixture, "\"title\":\"program\"");
	assert_holds(fixture, "\"subtitle\":\"/usr/bin/program (pid 4711) \xc2\xb7 999 Hz \xc2\xb7 "
						  "3.01 s \xc2\xb7 2,000 samples\"");
	assert_holds(fixture, "\"note\":\"100 stacks cut (5.00%)\"");
	assert_holds(fixture, "\"width\":0,\"layout\":\"icicle\"");
}

static void tells_without_facts_what_the_journal_knows(void **state)
{
	struct fixture *fixture = *state;

	draw(fixture, "{}");
	assert_holds(fixture, "\"title\":\"profile\"");
	assert_holds(fixture, "\"subtitle\":\"1000 Hz \xc2\xb7 3.01 s \xc2\xb7 2,000 samples\"");
}

static void tells_what_is_lost_and_what_could_not_be_sampled(void **state)
{
	struct fixture *fixture = *state;

	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_LOSS,
			.loss = {.time_ns = 9000, .cause = JOURNAL_LOSS_RING, .count = 500}});
	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_CPU_TIME,
							   .cpu_time = {.time_ns = 9000, .pid = 10, .total_ns = 8000000000}});
	draw(fixture, "{'label':'a label','effective':{'kernel_sampled':false}}");
	assert_holds(fixture, "\"title\":\"a label\"");
	assert_holds(fixture, "\"note\":\"500 samples lost (20.00%) \xc2\xb7 100 stacks cut (5.00%) "
						  "\xc2\xb7 6.00 s of CPU time not "
						  "in the samples (75.00%): the kernel could not be sampled\"");
}

static void tells_why_functions_are_not_named(void **state)
{
	struct fixture *fixture = *state;

	draw(fixture,
		"{'warnings':[{'code':'other','message':'not told'},5,{'code':'analyzer_failed','message':"
		"'profd-analyzer was killed by signal 9 <b>; functions are not named','hint':'later'}]}");
	assert_holds(fixture,
		"\"note\":\"functions are not named: profd-analyzer was killed by signal 9 "
		"\\u003cb\\u003e \xc2\xb7 100 stacks cut (5.00%)\"");
	assert_lacks(fixture, "not told");
}

static void one_is_not_told_as_many_and_little_not_as_nothing(void **state)
{
	struct fixture *fixture = *state;

	recorded_samples(&fixture->journal, 10, 1, 40000);
	recorded_add(
		&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS,
							   .loss = {.time_ns = 9000, .cause = JOURNAL_LOSS_RING, .count = 1}});
	draw(fixture, "{}");
	assert_holds(fixture, "\"note\":\"1 sample lost (\\u003c0.01%) \xc2\xb7 100 stacks cut");
	assert_lacks(fixture, "1 samples");
}

static void looks_as_was_asked_for(void **state)
{
	struct fixture *fixture = *state;

	draw(fixture,
		"{'label':'a label','options':{'svg':{'title':'a title','width_px':640,'layout':'flame',"
		"'colors':'image','threads':'merged','order':'weight','min_share_ppm':60000}}}");
	assert_holds(fixture, "\"title\":\"a title\"");
	assert_holds(fixture, "\"width\":640,\"layout\":\"flame\"");
	assert_holds(fixture, " width=\"640\" ");
	assert_holds(fixture, "\"legend\":[[\"library.so\"");
	assert_lacks(fixture, "\"one\""); /* no threads */
	assert_holds(fixture, "\"cut\":120");
}

static void takes_no_value_that_the_daemon_would_refuse(void **state)
{
	struct fixture *fixture = *state;

	draw(fixture,
		"{'options':{'svg':{'title':5,'width_px':100,'layout':'round','colors':[],'threads':null,"
		"'min_share_ppm':-3}}}");
	assert_holds(fixture, "\"title\":\"profile\"");
	assert_holds(fixture, "\"width\":0,\"layout\":\"icicle\"");
	assert_holds(fixture, "\"one\"");
	assert_holds(fixture, "\"cut\":1,");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_program_rate_duration_and_samples),
		CASE(tells_without_facts_what_the_journal_knows),
		CASE(tells_what_is_lost_and_what_could_not_be_sampled),
		CASE(tells_why_functions_are_not_named),
		CASE(one_is_not_told_as_many_and_little_not_as_nothing),
		CASE(looks_as_was_asked_for),
		CASE(takes_no_value_that_the_daemon_would_refuse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
