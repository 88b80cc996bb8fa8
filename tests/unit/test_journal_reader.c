#include "profile/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/limits.h"
#include "unit/journal_bytes.h"

/* What a reader makes of a file. */
struct outcome {
	size_t records, good_bytes;
	bool is_bad;
	char problem[256];
};

/* The bytes are copied to an allocation of their exact size, so that a read beyond them is seen. */
static struct outcome read_all(const uint8_t *data, size_t len)
{
	struct outcome outcome = {0};
	uint8_t *exact = malloc(len > 0 ? len : 1);
	memcpy(exact, data, len);
	struct journal_reader *reader = journal_reader_create(exact, len);
	assert_non_null(reader);
	struct journal_record record;
	enum journal_result result;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		outcome.records++;
	}
	assert_int_equal(journal_reader_next(reader, &record), result);
	outcome.is_bad = result == JOURNAL_READ_BAD;
	outcome.good_bytes = journal_reader_good_bytes(reader);
	snprintf(outcome.problem, sizeof(outcome.problem), "%s", journal_reader_problem(reader));
	assert_true(outcome.is_bad == (outcome.problem[0] != '\0'));
	journal_reader_destroy(reader);
	free(exact);
	return outcome;
}

static void reads_nothing_of_an_empty_file(void **state)
{
	(void)state;
	struct outcome outcome = read_all((const uint8_t *)"", 0);
	assert_false(outcome.is_bad);
	assert_int_equal(outcome.records, 0);
	struct journal_reader *reader = journal_reader_create(NULL, 0);
	struct journal_record record;
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_END);
	journal_reader_destroy(reader);
	journal_reader_destroy(NULL);
}

#define CHUNKS 4

/* Two segments of two chunks; ends[i] and records[i]: behind chunk i. */
static struct built four_chunks(size_t ends[CHUNKS + 1], size_t records[CHUNKS + 1])
{
	struct built file = {0};
	ends[0] = records[0] = 0;
	add_chunk_hex(&file, 5, 0, SEGMENT_HEX STRING_HEX STRING_HEX);
	ends[1] = file.len;
	records[1] = 3;
	add_chunk_hex(&file, 5, 1, "0e 09 80897a 9321 09 00 01 00 0e 09 80897a 9321 09 00 01 00");
	ends[2] = file.len;
	records[2] = 5;
	add_chunk_hex(&file, 6, 0, SEGMENT_HEX "0d 11 09 01 00 04 10 80c08004 20 0a 9bc08004 0b 02");
	ends[3] = file.len;
	records[3] = 7;
	add_chunk_hex(&file, 6, 1, END_HEX);
	ends[4] = file.len;
	records[4] = 8;
	return file;
}

static void gives_exactly_the_whole_chunks_before_a_cut(void **state)
{
	(void)state;
	size_t ends[CHUNKS + 1], records[CHUNKS + 1];
	struct built file = four_chunks(ends, records);
	for (size_t len = 0, whole = 0; len <= file.len; len++) {
		if (whole < CHUNKS && len == ends[whole + 1]) {
			whole++;
		}
		struct outcome outcome = read_all(file.data, len);
		assert_int_equal(outcome.records, records[whole]);
		assert_int_equal(outcome.good_bytes, ends[whole]);
		assert_true(outcome.is_bad == (len != ends[whole]));
	}
	free(file.data);
}

static void notices_every_flipped_bit(void **state)
{
	(void)state;
	size_t ends[CHUNKS + 1], records[CHUNKS + 1];
	struct built file = four_chunks(ends, records);
	size_t chunk = 0;
	for (size_t at = 0; at < file.len; at++) {
		chunk += at == ends[chunk + 1];
		for (int bit = 0; bit < 8; bit++) {
			file.data[at] ^= (uint8_t)(1 << bit);
			struct outcome outcome = read_all(file.data, file.len);
			assert_true(outcome.is_bad);
			assert_int_equal(outcome.records, records[chunk]);
			assert_int_equal(outcome.good_bytes, ends[chunk]);
			file.data[at] ^= (uint8_t)(1 << bit);
		}
	}
	free(file.data);
}

/* The numbers of chunks in file order, and how many of them are good. */
struct numbering {
	uint32_t segment[3], chunk[3];
	size_t good;
};

static void stops_where_chunk_numbers_do_not_follow(void **state)
{
	(void)state;
	static const struct numbering numberings[] = {
		{{0, 0, 0}, {0, 1, 2}, 3},
		{{5, 5, 6}, {0, 1, 0}, 3},
		{{5, 6, 9}, {0, 0, 0}, 3}, /* a dropped segment */
		{{0, 0, 0}, {1, 2, 3}, 0}, /* the first is missing */
		{{0, 0, 0}, {0, 2, 3}, 1}, /* one in the middle is missing */
		{{0, 0, 0}, {0, 1, 1}, 2}, /* one comes twice */
		{{0, 0, 0}, {0, 0, 1}, 1},
		{{6, 5, 5}, {0, 0, 1}, 1}, /* back */
		{{5, 6, 6}, {0, 1, 2}, 1}, /* a segment that begins late */
		{{0, 0, 0}, {0, UINT32_MAX, 0}, 1},
	};
	for (size_t i = 0; i < sizeof(numberings) / sizeof(numberings[0]); i++) {
		const struct numbering *numbering = &numberings[i];
		struct built file = {0};
		size_t good_bytes = 0;
		for (size_t c = 0; c < 3; c++) {
			add_chunk_hex(&file, numbering->segment[c], numbering->chunk[c],
				numbering->chunk[c] == 0 ? SEGMENT_HEX : STRING_HEX);
			good_bytes = c < numbering->good ? file.len : good_bytes;
		}
		struct outcome outcome = read_all(file.data, file.len);
		assert_int_equal(outcome.records, numbering->good);
		assert_int_equal(outcome.good_bytes, good_bytes);
		assert_true(outcome.is_bad == (numbering->good < 3));
		free(file.data);
	}
}

static void skips_unknown_records(void **state)
{
	(void)state;
	struct built file = {0};
	add_chunk_hex(
		&file, 0, 0, SEGMENT_HEX "14 03 ffffff 7f 00 ff 01 80 00 00" STRING_HEX "c8 01 00");
	struct outcome outcome = read_all(file.data, file.len);
	assert_false(outcome.is_bad);
	assert_int_equal(outcome.records, 2);
	assert_int_equal(outcome.good_bytes, file.len);
	free(file.data);
}

static void ignores_what_stands_behind_the_known_fields(void **state)
{
	(void)state;
	struct built file = {0};
	add_chunk_hex(
		&file, 0, 0, SEGMENT_HEX "08 06 02 07 ffffffff  0d 08 01 02 00 01 08 20 8080  08 02 02 07");
	struct journal_reader *reader = journal_reader_create(file.data, file.len);
	struct journal_record record;
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.thread_end.tid, 7);
	assert_int_equal(record.thread_end.time_ns, 1);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.stack.frame_count, 1);
	assert_int_equal(record.stack.values[0], 16);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.thread_end.time_ns, 2);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_END);
	journal_reader_destroy(reader);
	free(file.data);
}

static void reads_absent_fields_as_zero(void **state)
{
	(void)state;
	struct built file = {0};
	add_chunk_hex(&file, 0, 0, "01 01 01  03 01 05  08 02 02 07  0e 02 02 09  0e 00  0d 02 03 04");
	struct journal_reader *reader = journal_reader_create(file.data, file.len);
	struct journal_record record;
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.segment.pointer_bytes, 0);
	assert_int_equal(record.segment.system.len, 0);
	assert_non_null(record.segment.system.data);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.string.id, 5);
	assert_int_equal(record.string.text.len, 0);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.sample.tid, 9);
	assert_int_equal(record.sample.stack, 0);
	assert_int_equal(record.sample.weight, 0);
	/* Without even a time: no difference to the one before. */
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.sample.time_ns, 2);
	assert_int_equal(record.sample.tid, 0);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_int_equal(record.stack.frame_count, 0);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_END);
	journal_reader_destroy(reader);
	free(file.data);
}

static void begins_the_time_anew_in_every_chunk(void **state)
{
	(void)state;
	struct built file = {0};
	add_chunk_hex(&file, 0, 0, SEGMENT_HEX "08 03 d00f 01");
	add_chunk_hex(&file, 0, 1, "08 03 d00f 01");
	struct journal_reader *reader = journal_reader_create(file.data, file.len);
	struct journal_record record;
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
		assert_int_equal(record.thread_end.time_ns, 1000);
	}
	journal_reader_destroy(reader);
	free(file.data);
}

static void accepts_the_largest_chunk_and_no_larger_one(void **state)
{
	(void)state;
	for (size_t more = 0; more < 2; more++) {
		/* An unknown record fills the payload: 4 bytes of SEGMENT, 1 of type, 3 of length. */
		size_t len = LIMIT_CHUNK_BYTES + more;
		struct built payload = unhex(SEGMENT_HEX "7f"), file = {0};
		add_varint(&payload, len - 8);
		uint8_t *filling = calloc(1, len - 8);
		add(&payload, filling, len - 8);
		assert_int_equal(payload.len, len);
		add_chunk(&file, 0, 0, payload.data, payload.len);
		struct outcome outcome = read_all(file.data, file.len);
		assert_true(outcome.is_bad == (more > 0));
		assert_int_equal(outcome.records, 1 - more);
		assert_int_equal(outcome.good_bytes, more > 0 ? 0 : file.len);
		free(filling);
		free(payload.data);
		free(file.data);
	}
}

/* Behind a SEGMENT, in a chunk whose CRC is right. */
struct contradiction {
	const char *hex, *problem;
};

static const struct contradiction contradictions[] = {
	{"03", "longer"},                      /* no length */
	{"03 80", "longer"},                   /* half a length */
	{"03 ffffffffffffffffff02", "longer"}, /* a length over 64 bits */
	{"03 ffffffffffffffffff01", "longer"}, /* a body beyond the chunk */
	{"03 06 01 03 6161", "longer"},        /* by one byte */
	{"7f 01", "longer"},                   /* also of a type that is not known */
	{"03 01 00", "contradicts"},           /* id 0 */
	{"03 05 8080808008", "contradicts"},   /* id 2^31 */
	{"04 01 00", "contradicts"}, {"04 06 01 8080808008", "contradicts"}, /* a name 2^31 */
	{"09 01 00", "contradicts"}, {"0c 01 00", "contradicts"}, {"0d 01 00", "contradicts"},
	{"0e 07 00 01 8080808008", "contradicts"},            /* a stack 2^31 */
	{"03 03 01 02 61", "contradicts"},                    /* a text beyond the body */
	{"03 0b 01 ffffffffffffffffff01", "contradicts"},     /* far beyond it */
	{"08 02 02 80", "contradicts"},                       /* half a number */
	{"08 0b 00 80808080808080808002", "contradicts"},     /* a number over 64 bits */
	{"0d 04 01 01 00 01", "contradicts"},                 /* a frame that is not there */
	{"0d 0c 01 01 00 ffffffffffffffff7f", "contradicts"}, /* 2^63 - 1 frames */
	{"0d 06 01 01 00 02 08 02", "contradicts"},           /* the second one is missing */
	{"0d 07 01 01 00 01 10 02 02", "contradicts"},        /* a run of more frames than there are */
	{"0d 06 01 01 00 01 00 02", "contradicts"},           /* an empty run */
	{"0d 06 01 01 00 01 0d 02", "contradicts"},           /* kind 5 */
	{"0d 06 01 01 00 01 0f 02", "contradicts"},           /* kind 7 */
	{"0d 06 01 01 00 01 0a 01", "contradicts"},           /* FRAME -1 */
	{"0d 0a 01 01 00 01 0a 8080808010", "contradicts"},   /* FRAME 2^31 */
	{"0d 06 01 01 00 01 08 80", "contradicts"},           /* half a value */
	{SEGMENT_HEX, "cannot stand"},                        /* a second SEGMENT */
};

static void refuses_records_that_contradict_the_format(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(contradictions) / sizeof(contradictions[0]); i++) {
		struct built file = {0}, payload = unhex(SEGMENT_HEX);
		add_chunk_hex(&file, 0, 0, SEGMENT_HEX STRING_HEX);
		size_t good_bytes = file.len;
		add_hex(&payload, contradictions[i].hex);
		add_chunk(&file, 1, 0, payload.data, payload.len);
		struct outcome outcome = read_all(file.data, file.len);
		if (!outcome.is_bad || outcome.records != 3 || outcome.good_bytes != good_bytes ||
			strstr(outcome.problem, contradictions[i].problem) == NULL) {
			fail_msg("\"%s\": %s", contradictions[i].hex, outcome.problem);
		}
		free(payload.data);
		free(file.data);
	}
}

static void refuses_a_segment_that_does_not_begin_with_a_segment(void **state)
{
	(void)state;
	static const char *const payloads[] = {
		STRING_HEX, ("7f 00" SEGMENT_HEX), "01 00", "01 02 02 00"};
	for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
		struct built file = {0};
		add_chunk_hex(&file, 0, 0, payloads[i]);
		struct outcome outcome = read_all(file.data, file.len);
		assert_true(outcome.is_bad);
		assert_int_equal(outcome.records, 0);
		assert_int_equal(outcome.good_bytes, 0);
		free(file.data);
	}
}

static void refuses_what_follows_the_end(void **state)
{
	(void)state;
	struct built same = {0}, next = {0};
	add_chunk_hex(&same, 0, 0, SEGMENT_HEX END_HEX STRING_HEX);
	struct outcome outcome = read_all(same.data, same.len);
	assert_true(outcome.is_bad);
	assert_int_equal(outcome.good_bytes, 0);

	add_chunk_hex(&next, 0, 0, SEGMENT_HEX END_HEX);
	size_t good_bytes = next.len;
	add_chunk_hex(&next, 0, 1, STRING_HEX);
	outcome = read_all(next.data, next.len);
	assert_true(outcome.is_bad);
	assert_int_equal(outcome.records, 2);
	assert_int_equal(outcome.good_bytes, good_bytes);
	free(same.data);
	free(next.data);
}

static void says_where_the_problem_is(void **state)
{
	(void)state;
	struct built file = {0};
	add_chunk_hex(&file, 0, 0, SEGMENT_HEX STRING_HEX);
	file.data[30] ^= 1;
	add_chunk_hex(&file, 0, 1, STRING_HEX);
	struct outcome outcome = read_all(file.data, file.len);
	assert_non_null(strstr(outcome.problem, "checksum"));
	assert_non_null(strstr(outcome.problem, "byte 0 "));
	file.data[30] ^= 1;
	file.data[33] ^= 1;
	outcome = read_all(file.data, file.len);
	assert_non_null(strstr(outcome.problem, "byte 33"));
	free(file.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_nothing_of_an_empty_file),
		cmocka_unit_test(gives_exactly_the_whole_chunks_before_a_cut),
		cmocka_unit_test(notices_every_flipped_bit),
		cmocka_unit_test(stops_where_chunk_numbers_do_not_follow),
		cmocka_unit_test(skips_unknown_records),
		cmocka_unit_test(ignores_what_stands_behind_the_known_fields),
		cmocka_unit_test(reads_absent_fields_as_zero),
		cmocka_unit_test(begins_the_time_anew_in_every_chunk),
		cmocka_unit_test(accepts_the_largest_chunk_and_no_larger_one),
		cmocka_unit_test(refuses_records_that_contradict_the_format),
		cmocka_unit_test(refuses_a_segment_that_does_not_begin_with_a_segment),
		cmocka_unit_test(refuses_what_follows_the_end),
		cmocka_unit_test(says_where_the_problem_is),
	};
	return cmocka_run_group_tests_name("journal_reader", tests, NULL, NULL);
}
