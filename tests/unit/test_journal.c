#include "profile/journal.h"

#include <stdlib.h>
#include <string.h>

#include "unit/journal_bytes.h"
#include "unit/journal_vectors.h"

#define VECTORS (sizeof(journal_vectors) / sizeof(journal_vectors[0]))

static void assert_texts_equal(struct bytes_text a, struct bytes_text b)
{
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
}

static void assert_stacks_equal(const struct journal_stack *a, const struct journal_stack *b)
{
	assert_memory_equal(a, b, offsetof(struct journal_stack, values));
	for (size_t i = 0; i < a->frame_count; i++) {
		assert_int_equal(a->values[i], b->values[i]);
		assert_int_equal(a->kinds[i], b->kinds[i]);
	}
}

static void assert_records_equal(const struct journal_record *a, const struct journal_record *b)
{
	assert_int_equal(a->type, b->type);
	switch (a->type) {
	case JOURNAL_SEGMENT:
		assert_memory_equal(&a->segment, &b->segment, offsetof(struct journal_segment, machine));
		assert_texts_equal(a->segment.machine, b->segment.machine);
		assert_texts_equal(a->segment.system, b->segment.system);
		break;
	case JOURNAL_CAPTURE:
		assert_texts_equal(a->capture.json, b->capture.json);
		break;
	case JOURNAL_STRING:
		assert_int_equal(a->string.id, b->string.id);
		assert_texts_equal(a->string.text, b->string.text);
		break;
	case JOURNAL_IMAGE:
		assert_memory_equal(&a->image, &b->image, offsetof(struct journal_image, build_id));
		assert_texts_equal(a->image.build_id, b->image.build_id);
		assert_int_equal(a->image.access, b->image.access);
		break;
	case JOURNAL_STACK:
		assert_stacks_equal(&a->stack, &b->stack);
		break;
	default: /* numbers only; what a type does not use is zero in both */
		assert_memory_equal(&a->mapping, &b->mapping, sizeof(a->mapping));
	}
}

static void has_a_vector_for_every_record(void **state)
{
	(void)state;
	bool has[JOURNAL_END + 1] = {false};
	for (size_t i = 0; i < VECTORS; i++) {
		has[journal_vectors[i].record.type] = true;
	}
	for (int type = JOURNAL_SEGMENT; type <= JOURNAL_END; type++) {
		assert_true(has[type]);
	}
}

static void encodes_every_record_as_the_layout_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		struct built expected = unhex(journal_vectors[i].hex);
		struct buffer out = {0};
		uint64_t time_ns = journal_vectors[i].before_ns;
		assert_true(journal_encode(&out, &journal_vectors[i].record, &time_ns));
		assert_int_equal(out.len, expected.len);
		assert_memory_equal(out.data, expected.data, expected.len);
		buffer_finish(&out);
		free(expected.data);
	}
}

/* A chunk that holds the vector behind what makes it legal: a SEGMENT, and a THREAD_END at the time before. */
static struct built vector_file(const struct journal_vector *vector)
{
	struct built payload = {0};
	if (vector->record.type != JOURNAL_SEGMENT) {
		struct built body = {0};
		add_varint(&body, 2 * vector->before_ns);
		add_varint(&body, 1);
		add_hex(&payload, SEGMENT_HEX "08");
		add_varint(&payload, body.len);
		add(&payload, body.data, body.len);
		free(body.data);
	}
	add_hex(&payload, vector->hex);
	struct built file = {0};
	add_chunk(&file, 0, 0, payload.data, payload.len);
	free(payload.data);
	return file;
}

static void reads_every_record_as_the_layout_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		struct built file = vector_file(&journal_vectors[i]);
		struct journal_reader *reader = journal_reader_create(file.data, file.len);
		struct journal_record record;
		size_t skip = journal_vectors[i].record.type == JOURNAL_SEGMENT ? 0 : 2;
		for (size_t record_index = 0; record_index <= skip; record_index++) {
			assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
		}
		assert_records_equal(&record, &journal_vectors[i].record);
		assert_int_equal(journal_reader_good_bytes(reader), file.len);
		assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_END);
		journal_reader_destroy(reader);
		free(file.data);
	}
}

static void encodes_and_reads_bodies_longer_than_127_bytes(void **state)
{
	(void)state;
	static const size_t lengths[] = {124, 125, 126, 127, 128, 16379, 16380, 16381, 16382, 70000};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char *text = malloc(lengths[i]);
		memset(text, 'a', lengths[i]);
		struct built body = {0}, expected = {0}, file = {0};
		add_varint(&body, 1);
		add_varint(&body, lengths[i]);
		add(&body, text, lengths[i]);
		add(&expected, "\x03", 1);
		add_varint(&expected, body.len);
		add(&expected, body.data, body.len);

		struct journal_record record = {.type = JOURNAL_STRING, .string = {1, {text, lengths[i]}}};
		struct buffer out = {0};
		uint64_t time_ns = 0;
		assert_true(journal_encode(&out, &record, &time_ns));
		assert_int_equal(out.len, expected.len);
		assert_memory_equal(out.data, expected.data, expected.len);

		struct built payload = unhex(SEGMENT_HEX);
		add(&payload, expected.data, expected.len);
		add_chunk(&file, 0, 0, payload.data, payload.len);
		struct journal_reader *reader = journal_reader_create(file.data, file.len);
		struct journal_record decoded;
		assert_int_equal(journal_reader_next(reader, &decoded), JOURNAL_READ_RECORD);
		assert_int_equal(journal_reader_next(reader, &decoded), JOURNAL_READ_RECORD);
		assert_records_equal(&decoded, &record);
		journal_reader_destroy(reader);
		buffer_finish(&out);
		free(payload.data);
		free(file.data);
		free(expected.data);
		free(body.data);
		free(text);
	}
}

static void appends_behind_what_is_there_and_keeps_the_running_time(void **state)
{
	(void)state;
	struct buffer out = {0};
	uint64_t time_ns = 0;
	struct journal_record first = {.type = JOURNAL_THREAD_END, .thread_end = {1000, 1}};
	struct journal_record text = {.type = JOURNAL_NOTE, .note = {1, 2}};
	struct journal_record second = {.type = JOURNAL_THREAD_END, .thread_end = {1003, 2}};
	assert_true(journal_encode(&out, &first, &time_ns));
	assert_true(journal_encode(&out, &text, &time_ns));
	assert_true(journal_encode(&out, &second, &time_ns));
	assert_int_equal(time_ns, 1003);
	struct built expected = unhex("08 03 d00f 01  12 02 01 02  08 02 06 02");
	assert_int_equal(out.len, expected.len);
	assert_memory_equal(out.data, expected.data, expected.len);
	free(expected.data);
	buffer_finish(&out);
}

static void seals_a_chunk_as_the_vector_says(void **state)
{
	(void)state;
	struct built chunk = unhex(JOURNAL_VECTOR_CHUNK);
	uint8_t header[JOURNAL_HEADER_BYTES];
	memset(header, 0xaa, sizeof(header));
	journal_seal(header, 5, 0, chunk.data + JOURNAL_HEADER_BYTES,
		(uint32_t)(chunk.len - JOURNAL_HEADER_BYTES));
	assert_memory_equal(header, chunk.data, JOURNAL_HEADER_BYTES);
	free(chunk.data);
}

static void seals_an_empty_payload(void **state)
{
	(void)state;
	uint8_t header[JOURNAL_HEADER_BYTES];
	journal_seal(header, 1, 2, NULL, 0);
	struct built expected = {0};
	add_chunk(&expected, 1, 2, "", 0);
	assert_memory_equal(header, expected.data, JOURNAL_HEADER_BYTES);
	free(expected.data);
}

static void reads_the_vector_chunk_although_its_segment_is_not_the_first(void **state)
{
	(void)state;
	struct built chunk = unhex(JOURNAL_VECTOR_CHUNK);
	struct journal_reader *reader = journal_reader_create(chunk.data, chunk.len);
	struct journal_record record;
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_records_equal(&record, &journal_vectors[0].record);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_RECORD);
	assert_records_equal(&record, &journal_vectors[2].record);
	assert_int_equal(journal_reader_next(reader, &record), JOURNAL_READ_END);
	assert_int_equal(journal_reader_good_bytes(reader), chunk.len);
	journal_reader_destroy(reader);
	free(chunk.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_a_vector_for_every_record),
		cmocka_unit_test(encodes_every_record_as_the_layout_says),
		cmocka_unit_test(reads_every_record_as_the_layout_says),
		cmocka_unit_test(encodes_and_reads_bodies_longer_than_127_bytes),
		cmocka_unit_test(appends_behind_what_is_there_and_keeps_the_running_time),
		cmocka_unit_test(seals_a_chunk_as_the_vector_says),
		cmocka_unit_test(seals_an_empty_payload),
		cmocka_unit_test(reads_the_vector_chunk_although_its_segment_is_not_the_first),
	};
	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
