#include "analyzer/model/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/model/input.h"
#include "protocol/limits.h"
#include "support/recorded.h"

enum { TEXT_CPU = 1, TEXT_MAIN, TEXT_WORKER, TEXT_A, TEXT_B, TEXT_PROGRAM };

#define NATIVE JOURNAL_FRAME_NATIVE

struct fixture {
	struct recorded journal;
	struct strings *strings;
	struct model *model;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->strings = strings_create();
	recorded_begin(&fixture->journal);
	recorded_metric(&fixture->journal, 1, TEXT_CPU, 1000);
	recorded_text(&fixture->journal, TEXT_MAIN, "main thread");
	recorded_text(&fixture->journal, TEXT_WORKER, "worker");
	recorded_text(&fixture->journal, TEXT_A, "/lib/a.so");
	recorded_text(&fixture->journal, TEXT_B, "/lib/b.so");
	recorded_text(&fixture->journal, TEXT_PROGRAM, "program");
	recorded_process(&fixture->journal, 10, 1, TEXT_PROGRAM);
	recorded_thread(&fixture->journal, 10, 10, TEXT_MAIN);
	recorded_image(&fixture->journal, 1, JOURNAL_IMAGE_ELF, TEXT_A);
	recorded_image(&fixture->journal, 2, JOURNAL_IMAGE_ELF, TEXT_B);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	model_destroy(fixture->model);
	strings_destroy(fixture->strings);
	recorded_finish(&fixture->journal);
	free(fixture);
	return 0;
}

static struct model *load(struct fixture *fixture)
{
	recorded_seal(&fixture->journal);
	fixture->model = model_create(
		fixture->strings, fixture->journal.bytes.data, fixture->journal.bytes.len, NULL);
	assert_non_null(fixture->model);
	return fixture->model;
}

static void assert_text(const struct fixture *fixture, uint32_t id, const char *text)
{
	assert_string_equal(strings_text(fixture->strings, id).data, text);
}

static const struct model_frame *frame(const struct model *model, size_t stack, size_t index)
{
	assert_true(stack < model->stacks.len);
	assert_true(index < model->stacks.items[stack].count);
	return &model->frames.items[model->stacks.items[stack].first + index];
}

static void assert_place(const struct model_frame *item, uint32_t image, uint64_t offset)
{
	assert_int_equal(item->image, image);
	assert_int_equal(item->offset, offset);
}

static void looks_return_addresses_up_one_byte_before(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {
		{0x1000, NATIVE}, {0x2000, NATIVE}, {0x2000, JOURNAL_FRAME_EXACT}, {0x1fff, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_map(&fixture->journal, 10, 0x2000, 0x1000, 0x7000, 2);
	recorded_stack(&fixture->journal, 5, 10, JOURNAL_STACK_COMPLETE, frames, 4);
	const struct model *model = load(fixture);

	assert_place(frame(model, 1, 0), 0, 0);     /* the leaf, exact */
	assert_place(frame(model, 1, 1), 0, 0xfff); /* the call is the last instruction of a.so */
	assert_int_equal(frame(model, 1, 1)->address, 0x2000);
	assert_place(frame(model, 1, 2), 1, 0x7000); /* above a signal frame: exact */
	assert_place(frame(model, 1, 3), 0, 0xffe);
}

static void takes_the_interrupted_place_below_kernel_frames_as_it_is(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {{0xffffffff81000010, JOURNAL_FRAME_KERNEL},
		{0xffffffff81000020, JOURNAL_FRAME_KERNEL}, {0x1000, NATIVE}, {0x1800, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_stack(&fixture->journal, 5, 10, JOURNAL_STACK_COMPLETE, frames, 4);
	const struct model *model = load(fixture);

	assert_int_equal(frame(model, 1, 0)->is_return, 0);
	assert_int_equal(frame(model, 1, 1)->is_return, 1);
	assert_place(frame(model, 1, 2), 0, 0);
	assert_place(frame(model, 1, 3), 0, 0x7ff);
}

static void resolves_a_stack_by_the_mappings_at_its_place_in_the_file(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x3000, 0x100, 1);
	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 1);
	recorded_map(&fixture->journal, 10, 0x1800, 0x800, 0, 2);
	recorded_stack(&fixture->journal, 6, 10, 0, leaf, 1);
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_UNMAPPING, .unmapping = {1800, 10, 0x1800, 0x10}});
	recorded_stack(&fixture->journal, 7, 10, 0, leaf, 1);
	const struct recorded_frame tail[] = {{0x2000, NATIVE}};

	recorded_stack(&fixture->journal, 8, 10, 0, tail, 1);
	const struct model *model = load(fixture);

	assert_place(frame(model, 1, 0), 0, 0x900);
	assert_place(frame(model, 2, 0), 1, 0);
	assert_int_equal(frame(model, 3, 0)->image, MODEL_NONE);
	assert_place(frame(model, 4, 0), 0, 0x1100); /* what was behind the hole stays */
}

static void gives_a_forked_child_the_mappings_of_its_parent(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_PROCESS,
										.process = {1800, 11, 10, TEXT_PROGRAM, 0, 0, 1}});
	recorded_stack(&fixture->journal, 5, 11, 0, leaf, 1);
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_PROCESS,
										.process = {1900, 11, 10, TEXT_WORKER, 0, 1, 0}});
	recorded_stack(&fixture->journal, 6, 11, 0, leaf, 1);
	recorded_stack(&fixture->journal, 7, 10, 0, leaf, 1);
	const struct model *model = load(fixture);

	assert_place(frame(model, 1, 0), 0, 0x800);
	assert_int_equal(frame(model, 2, 0)->image, MODEL_NONE); /* exec: they are gone */
	assert_place(frame(model, 3, 0), 0, 0x800);              /* the parent keeps its own */
	assert_int_equal(model->processes.len, 2);
	assert_text(fixture, model->processes.items[1].name, "worker");
}

static void counts_samples_by_thread_and_stack(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	recorded_thread(&fixture->journal, 10, 12, TEXT_WORKER);
	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 1);
	recorded_samples(&fixture->journal, 10, 5, 3);
	recorded_samples(&fixture->journal, 12, 5, 4);
	recorded_samples(&fixture->journal, 10, 5, 2);
	recorded_samples(&fixture->journal, 12, 0, 6);
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_SAMPLE, .sample = {9000, 10, 5, 0, 1, 77}});
	const struct model *model = load(fixture);

	assert_int_equal(model_samples(model), 16);
	assert_int_equal(model_period(model), 1000);
	assert_int_equal(model->cells.len, 3);
	assert_int_equal(model->cells.items[0].count, 6);
	assert_int_equal(model->cells.items[0].weight, 5 * 1000 + 77);
	assert_int_equal(model->cells.items[2].stack, 0);
	assert_int_equal(model->threads.items[0].samples, 6);
	assert_int_equal(model->threads.items[1].samples, 10);
	assert_int_equal(model->first_sample_ns, 2000);
	assert_int_equal(model->last_sample_ns, 9000);
}

static void names_a_thread_by_its_last_name_and_knows_a_reused_id(void **state)
{
	struct fixture *fixture = *state;

	recorded_thread(&fixture->journal, 10, 12, TEXT_MAIN);
	recorded_thread(&fixture->journal, 10, 12, TEXT_WORKER);
	recorded_add(&fixture->journal,
		&(struct journal_record){.type = JOURNAL_THREAD_END, .thread_end = {1900, 12}});
	recorded_thread(&fixture->journal, 10, 12, TEXT_MAIN);
	recorded_thread(&fixture->journal, 10, 13, 0);
	const struct model *model = load(fixture);

	assert_int_equal(model->threads.len, 4);
	assert_text(fixture, model_thread_name(model, &model->threads.items[1]), "worker");
	assert_text(fixture, model_thread_name(model, &model->threads.items[2]), "main thread");
	assert_text(fixture, model_thread_name(model, &model->threads.items[3]), "program");
}

static void adds_losses_by_cause_and_keeps_throttling_apart(void **state)
{
	struct fixture *fixture = *state;
	static const struct journal_loss_record losses[] = {{1, JOURNAL_LOSS_RING, 5, 1, 0},
		{2, JOURNAL_LOSS_RING, 7, 0, 0}, {3, JOURNAL_LOSS_THROTTLED, 100, 0, 0},
		{4, JOURNAL_LOSS_DISK, 1, 0, 0}, {5, 99, 1, 0, 0}, {6, JOURNAL_LOSS_THROTTLED, 0, 0, 5000}};

	for (size_t i = 0; i < 6; i++) {
		recorded_add(
			&fixture->journal, &(struct journal_record){.type = JOURNAL_LOSS, .loss = losses[i]});
	}
	const struct model *model = load(fixture);

	assert_int_equal(model_lost(model), 13);
	assert_int_equal(model->lost[JOURNAL_LOSS_THROTTLED], 100);
	assert_int_equal(model->withheld_ns, 5000);
	assert_int_equal(model->contradictions, 1);
}

static void takes_the_latest_cpu_time_of_each_process(void **state)
{
	struct fixture *fixture = *state;
	static const struct journal_cpu_time times[] = {{1, 10, 0, 500, 0, 0},
		{2, 10, 0, 900, 600, 300}, {3, 10, 10, 70, 50, 20}, {4, 11, 15, 30, 0, 0},
		{5, 11, 16, 40, 0, 0}};

	recorded_process(&fixture->journal, 11, 10, TEXT_PROGRAM);
	recorded_thread(&fixture->journal, 11, 15, TEXT_WORKER);
	recorded_thread(&fixture->journal, 11, 16, TEXT_WORKER);
	for (size_t i = 0; i < 5; i++) {
		recorded_add(&fixture->journal,
			&(struct journal_record){.type = JOURNAL_CPU_TIME, .cpu_time = times[i]});
	}
	const struct model *model = load(fixture);

	assert_int_equal(model_cpu_ns(model), 900 + 30 + 40);
	assert_int_equal(model->threads.items[0].cpu_ns, 70);
	assert_int_equal(model->threads.items[0].cpu_user_ns, 50);
	assert_int_equal(model->threads.items[0].cpu_system_ns, 20);
	assert_int_equal(model->threads.items[0].told_at_ns, 3);
}

static void keeps_what_stands_before_a_bad_chunk(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 1);
	recorded_samples(&fixture->journal, 10, 5, 3);
	recorded_seal(&fixture->journal);
	recorded_samples(&fixture->journal, 10, 5, 3);
	recorded_seal(&fixture->journal);
	fixture->journal.bytes.data[fixture->journal.bytes.len - 1] ^= 1;
	const struct model *model = load(fixture);

	assert_true(model->is_damaged);
	assert_true(strings_text(fixture->strings, model->damage).len > 0);
	assert_int_equal(model_samples(model), 3);
	assert_false(model->has_end);
}

static void forgets_the_ids_of_one_segment_in_the_next(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 1);
	recorded_samples(&fixture->journal, 10, 5, 1);
	recorded_begin(&fixture->journal);
	recorded_samples(&fixture->journal, 10, 5, 1); /* neither metric nor stack are known here */
	recorded_metric(&fixture->journal, 1, TEXT_CPU, 1000);
	recorded_text(&fixture->journal, TEXT_B, "/lib/b.so");
	recorded_process(&fixture->journal, 10, 1, 0);
	recorded_thread(&fixture->journal, 10, 10, 0);
	recorded_image(&fixture->journal, 1, JOURNAL_IMAGE_ELF, TEXT_B);
	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 1); /* nor are mappings */
	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_stack(&fixture->journal, 6, 10, 0, leaf, 1);
	recorded_samples(&fixture->journal, 10, 6, 1);
	const struct model *model = load(fixture);

	assert_int_equal(model->contradictions, 1);
	assert_int_equal(model_samples(model), 2);
	assert_int_equal(model->metrics.len, 1);
	assert_int_equal(model->threads.len, 1);
	assert_int_equal(frame(model, 2, 0)->image, MODEL_NONE);
	assert_text(fixture, model->images.items[frame(model, 3, 0)->image].path, "/lib/b.so");
	assert_text(fixture, model->images.items[frame(model, 1, 0)->image].path, "/lib/a.so");
}

static void leaves_out_what_contradicts_itself(void **state)
{
	struct fixture *fixture = *state;

	recorded_samples(&fixture->journal, 10, 99, 2);                  /* no such stack */
	recorded_map(&fixture->journal, 77, 0x1000, 0x1000, 0, 1);       /* no such process */
	recorded_map(&fixture->journal, 10, UINT64_MAX - 10, 100, 0, 1); /* beyond all addresses */
	recorded_map(&fixture->journal, 10, 0x1000, 0, 0, 1);
	const struct recorded_frame leaf[] = {
		{UINT64_MAX - 5, NATIVE}, {0, NATIVE}, {4, JOURNAL_FRAME_INTERPRETED}};

	recorded_stack(&fixture->journal, 5, 10, 1234, leaf, 3);
	recorded_samples(&fixture->journal, 4711, 5, 1); /* no such thread: it is made */
	const struct model *model = load(fixture);

	assert_int_equal(model->contradictions, 3);
	assert_int_equal(model_samples(model), 1);
	assert_place(frame(model, 1, 0), 0, 5);
	assert_int_equal(frame(model, 1, 1)->image, MODEL_NONE);
	assert_int_equal(frame(model, 1, 2)->name, 0);
	assert_int_equal(model->threads.items[1].pid, 0);
}

static void punch(struct fixture *fixture, uint64_t start, uint64_t length)
{
	recorded_add(&fixture->journal, &(struct journal_record){.type = JOURNAL_UNMAPPING,
										.unmapping = {1800, 10, start, length}});
	if (fixture->journal.payload.len > LIMIT_CHUNK_BYTES / 2) {
		recorded_seal(&fixture->journal);
	}
}

/* Each hole makes two mappings of one, in a few bytes of the file. */
static void bounds_the_mappings_that_holes_make(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame frames[] = {{0x100, NATIVE}, {0x10001, NATIVE}};

	recorded_map(&fixture->journal, 10, 0, 1ull << 40, 0, 1);
	for (uint64_t i = 1; i < MODEL_PROCESS_MAPPINGS; i++) {
		punch(fixture, i << 16, 16);
	}
	for (uint64_t i = 0; i < 3; i++) {
		punch(fixture, (MODEL_PROCESS_MAPPINGS + i) << 16, 16);
	}
	punch(fixture, 0, 1 << 16); /* takes one away */
	recorded_stack(&fixture->journal, 1, 10, 0, frames, 2);
	struct model *model = load(fixture);

	assert_int_equal(model->contradictions, 3);
	assert_false(model->is_damaged);
	assert_int_equal(frame(model, 1, 0)->image, MODEL_NONE);
	assert_int_equal(frame(model, 1, 1)->image, MODEL_NONE);
}

static void reads_no_further_than_any_cut(void **state)
{
	struct fixture *fixture = *state;
	const struct recorded_frame leaf[] = {{0x1800, NATIVE}, {0x1900, NATIVE}};

	recorded_map(&fixture->journal, 10, 0x1000, 0x1000, 0, 1);
	recorded_stack(&fixture->journal, 5, 10, 0, leaf, 2);
	recorded_samples(&fixture->journal, 10, 5, 3);
	recorded_seal(&fixture->journal);
	for (size_t len = 0; len < fixture->journal.bytes.len; len++) {
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, fixture->journal.bytes.data, len);
		struct model *model = model_create(fixture->strings, copy, len, NULL);

		assert_non_null(model);
		assert_int_equal(model->is_damaged, len > 0);
		assert_int_equal(model_samples(model), 0);
		model_destroy(model);
		free(copy);
	}
	assert_int_equal(model_samples(load(fixture)), 3);
}

static void reads_a_file_that_says_it_is_empty(void **state)
{
	struct buffer text = {0};
	FILE *file = fopen("/proc/self/status", "r");

	(void)state;
	assert_non_null(file);
	assert_true(input_read(fileno(file), 1 << 20, "status", &text, NULL));
	assert_true(buffer_byte(&text, 0));
	assert_non_null(strstr((const char *)text.data, "VmRSS:"));
	text.len = 0;
	struct error err = {0};

	assert_false(input_read(fileno(file), 10, "status", &text, &err));
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	fclose(file);
	buffer_finish(&text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(looks_return_addresses_up_one_byte_before),
		CASE(takes_the_interrupted_place_below_kernel_frames_as_it_is),
		CASE(resolves_a_stack_by_the_mappings_at_its_place_in_the_file),
		CASE(gives_a_forked_child_the_mappings_of_its_parent),
		CASE(counts_samples_by_thread_and_stack),
		CASE(names_a_thread_by_its_last_name_and_knows_a_reused_id),
		CASE(adds_losses_by_cause_and_keeps_throttling_apart),
		CASE(takes_the_latest_cpu_time_of_each_process),
		CASE(keeps_what_stands_before_a_bad_chunk),
		CASE(forgets_the_ids_of_one_segment_in_the_next),
		CASE(leaves_out_what_contradicts_itself),
		CASE(bounds_the_mappings_that_holes_make),
		CASE(reads_no_further_than_any_cut),
		cmocka_unit_test(reads_a_file_that_says_it_is_empty),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
