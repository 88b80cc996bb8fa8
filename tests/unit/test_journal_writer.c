#include "profile/journal_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/limits.h"
#include "support/journal_scratch.h"

static void writes_every_record_in_order_in_chunks_of_the_stated_size(void **state)
{
	struct scratch *scratch = *state;
	enum { SAMPLES = 200000 };
	scratch_begin(scratch, 0);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		struct journal_record record = scratch_sample(i);
		scratch_append(scratch, &record);
	}
	scratch_finish(scratch);
	struct header headers[32];
	size_t count = scratch_headers(scratch, headers, 32);
	assert_true(count > 5);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(headers[i].segment, 0);
		assert_int_equal(headers[i].number, i);
		assert_int_equal(headers[i].reserved, 0);
		assert_true(headers[i].len <= JOURNAL_WRITER_CHUNK_BYTES);
		assert_true(i + 1 == count || headers[i].len > JOURNAL_WRITER_CHUNK_BYTES - 32);
	}
	assert_int_equal(scratch_count_samples(scratch), SAMPLES);
}

static void writes_nothing_when_nothing_was_appended(void **state)
{
	struct scratch *scratch = *state;
	scratch_create(scratch, 0);
	journal_writer_flush(scratch->writer);
	journal_writer_flush(scratch->writer);
	scratch_finish(scratch);
	assert_int_equal(scratch->len, 0);
	assert_true(journal_writer_destroy(NULL, true, NULL));
}

static void numbers_chunks_from_zero_in_every_segment(void **state)
{
	struct scratch *scratch = *state;
	scratch_create(scratch, 0);
	struct journal_record record = scratch_sample(0);
	for (int i = 0; i < 3; i++) {
		journal_writer_begin_segment(scratch->writer, &scratch_segment);
		journal_writer_flush(scratch->writer);
		journal_writer_flush(scratch->writer);
		scratch_append(scratch, &record);
	}
	scratch_finish(scratch);
	struct header headers[8];
	assert_int_equal(scratch_headers(scratch, headers, 8), 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(headers[i].segment, i / 2);
		assert_int_equal(headers[i].number, i % 2);
	}
}

static void puts_a_flushed_chunk_on_disk_while_the_capture_goes_on(void **state)
{
	struct scratch *scratch = *state;
	scratch_begin(scratch, 0);
	struct journal_record record = scratch_sample(0);
	scratch_append(scratch, &record);
	assert_int_equal(scratch_size(scratch), 0);
	assert_int_equal(journal_writer_bytes(scratch->writer), 0);
	journal_writer_flush(scratch->writer);
	uint64_t payload = journal_writer_bytes(scratch->writer);
	assert_true(payload > 0);
	for (int i = 0; i < 1000 && scratch_size(scratch) != JOURNAL_HEADER_BYTES + payload; i++) {
		scratch_sleep_ms(5);
	}
	scratch_read(scratch);
	assert_int_equal(scratch->len, JOURNAL_HEADER_BYTES + payload);
	assert_int_equal(scratch_count_samples(scratch), 1);
	scratch_finish(scratch);
	assert_int_equal(scratch->len, JOURNAL_HEADER_BYTES + payload);
}

static void begins_a_chunk_for_a_record_that_does_not_fit_any_more(void **state)
{
	struct scratch *scratch = *state;
	size_t text_len = JOURNAL_WRITER_CHUNK_BYTES + 1000;
	char *text = calloc(1, text_len);
	struct journal_record small = scratch_sample(0), middle = scratch_string(text, text_len / 2),
						  large = scratch_string(text, text_len);
	scratch_begin(scratch, 0);
	scratch_append(scratch, &middle);
	scratch_append(scratch, &middle);
	scratch_append(scratch, &large);
	scratch_append(scratch, &small);
	assert_false(journal_writer_failed(scratch->writer));
	scratch_finish(scratch);
	struct header headers[8];
	assert_int_equal(scratch_headers(scratch, headers, 8), 4);
	assert_in_range(headers[0].len, text_len / 2 + 1, text_len / 2 + 50);
	assert_in_range(headers[1].len, text_len / 2 + 1, text_len / 2 + 50);
	assert_in_range(headers[2].len, text_len + 1, text_len + 50);
	assert_true(headers[3].len < 50);
	/* The time of the sample is right although the record was tried in the chunk before. */
	assert_int_equal(scratch_count_samples(scratch), 1);
	free(text);
}

static void moves_a_timed_record_to_the_next_chunk_with_its_time(void **state)
{
	struct scratch *scratch = *state;
	/* A text that leaves every amount of room from 0 to 31 bytes. */
	char *text = calloc(1, JOURNAL_WRITER_CHUNK_BYTES);
	for (size_t room = 0; room < 32; room++) {
		struct journal_record filling =
			scratch_string(text, JOURNAL_WRITER_CHUNK_BYTES - 30 - room);
		struct journal_record first = scratch_sample(0), second = scratch_sample(1);
		scratch_open(scratch);
		scratch_begin(scratch, 0);
		scratch_append(scratch, &filling);
		scratch_append(scratch, &first);
		scratch_append(scratch, &second);
		scratch_finish(scratch);
		struct header headers[2];
		size_t count = scratch_headers(scratch, headers, 2);
		assert_true(headers[0].len <= JOURNAL_WRITER_CHUNK_BYTES);
		assert_int_equal(count, room == 0 ? 2 : count);
		assert_int_equal(count, room == 31 ? 1 : count);
		assert_int_equal(scratch_count_samples(scratch), 2);
	}
	free(text);
}

static void fails_on_a_record_that_no_chunk_can_hold_and_keeps_what_was_before(void **state)
{
	struct scratch *scratch = *state;
	char *text = calloc(1, LIMIT_CHUNK_BYTES);
	struct journal_record small = scratch_sample(0),
						  large = scratch_string(text, LIMIT_CHUNK_BYTES);
	scratch_begin(scratch, 0);
	scratch_append(scratch, &small);
	scratch_append(scratch, &large);
	assert_true(journal_writer_failed(scratch->writer));
	scratch_append(scratch, &small);
	struct error err;
	scratch_fail(scratch, false, &err);
	assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
	assert_int_equal(scratch_count_samples(scratch), 1);
	free(text);
}

static void is_full_at_the_given_size(void **state)
{
	struct scratch *scratch = *state;
	scratch_begin(scratch, 100);
	for (uint64_t i = 0; !journal_writer_is_full(scratch->writer); i++) {
		assert_true(i < 100);
		assert_true(journal_writer_bytes(scratch->writer) < 100);
		struct journal_record record = scratch_sample(i);
		scratch_append(scratch, &record);
		journal_writer_flush(scratch->writer);
	}
	assert_in_range(journal_writer_bytes(scratch->writer), 100, 120);
	assert_false(journal_writer_failed(scratch->writer));
	scratch_finish(scratch);

	scratch_open(scratch);
	scratch_begin(scratch, 0);
	journal_writer_flush(scratch->writer);
	assert_false(journal_writer_is_full(scratch->writer));
	scratch_finish(scratch);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, scratch_set_up, scratch_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(writes_every_record_in_order_in_chunks_of_the_stated_size),
		CASE(writes_nothing_when_nothing_was_appended),
		CASE(numbers_chunks_from_zero_in_every_segment),
		CASE(puts_a_flushed_chunk_on_disk_while_the_capture_goes_on),
		CASE(begins_a_chunk_for_a_record_that_does_not_fit_any_more),
		CASE(moves_a_timed_record_to_the_next_chunk_with_its_time),
		CASE(fails_on_a_record_that_no_chunk_can_hold_and_keeps_what_was_before),
		CASE(is_full_at_the_given_size),
	};
	return cmocka_run_group_tests_name("journal_writer", tests, NULL, NULL);
}
