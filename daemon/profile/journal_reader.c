#include "profile/journal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "profile/journal_layout.h"
#include "protocol/limits.h"

#define PROBLEM_BYTES 160

struct journal_reader {
	struct bytes file;    /* borrowed; pos: behind the chunk that is being read */
	struct bytes payload; /* of that chunk */
	size_t payload_at;    /* its offset in the file */
	size_t good_bytes;
	uint64_t last_time_ns;
	uint32_t segment, chunk;
	bool has_begun;       /* segment and chunk are those of the chunk being read */
	bool wants_segment;   /* the next record has to be a SEGMENT, and only then */
	bool has_ended;       /* an END was read */
	VEC(uint64_t) values; /* frames of the latest stack */
	VEC(uint8_t) kinds;
	char problem[PROBLEM_BYTES];
};

struct journal_reader *journal_reader_create(const uint8_t *data, size_t len)
{
	struct journal_reader *reader = calloc(1, sizeof(*reader));
	if (reader != NULL) {
		reader->file = bytes_of(data, len);
	}
	return reader;
}

void journal_reader_destroy(struct journal_reader *reader)
{
	if (reader == NULL) {
		return;
	}
	VEC_FINISH(&reader->values);
	VEC_FINISH(&reader->kinds);
	free(reader);
}

size_t journal_reader_good_bytes(const struct journal_reader *reader)
{
	return reader->good_bytes;
}

const char *journal_reader_problem(const struct journal_reader *reader)
{
	return reader->problem;
}

/* Keeps the problem and returns false. */
static bool problem(struct journal_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool problem(struct journal_reader *reader, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(reader->problem, sizeof(reader->problem), format, args);
	va_end(args);
	return false;
}

/* Chunk numbers count from 0 in every segment, and segment numbers rise. */
static bool check_numbers(
	struct journal_reader *reader, size_t at, uint32_t segment, uint32_t chunk)
{
	bool follows =
		reader->has_begun && segment == reader->segment && chunk != 0 && chunk == reader->chunk + 1;
	bool begins = chunk == 0 && (!reader->has_begun || segment > reader->segment);
	if (reader->wants_segment || (!follows && !begins)) {
		return problem(reader,
			"the chunk at byte %zu is number %" PRIu32 " of segment %" PRIu32
			", which does not follow the one before it",
			at, chunk, segment);
	}
	reader->segment = segment;
	reader->chunk = chunk;
	reader->has_begun = true;
	reader->wants_segment = begins;
	return true;
}

/* Checks the chunk at file.pos and makes its payload the one to read. */
static bool open_chunk(struct journal_reader *reader)
{
	struct bytes file = reader->file;
	size_t at = file.pos;
	if (reader->has_ended) {
		return problem(reader, "the file goes on at byte %zu behind its END record", at);
	}
	const uint8_t *header = bytes_take(&file, JOURNAL_HEADER_BYTES);
	if (header == NULL) {
		return problem(reader, "the file ends within the header of the chunk at byte %zu", at);
	}
	struct bytes fields = bytes_of(header, JOURNAL_HEADER_BYTES);
	uint32_t magic = bytes_u32(&fields);
	uint32_t len = bytes_u32(&fields);
	uint32_t segment = bytes_u32(&fields);
	uint32_t chunk = bytes_u32(&fields);
	uint32_t crc = bytes_u32(&fields);
	if (magic != JOURNAL_MAGIC) {
		return problem(reader, "no chunk begins at byte %zu", at);
	}
	if (len > LIMIT_CHUNK_BYTES) {
		return problem(reader,
			"the chunk at byte %zu says that it holds %" PRIu32 " bytes, over %d", at, len,
			LIMIT_CHUNK_BYTES);
	}
	const uint8_t *payload = bytes_take(&file, len);
	if (payload == NULL) {
		return problem(reader, "the file ends within the chunk at byte %zu", at);
	}
	if (journal_checksum(header, payload, len) != crc) {
		return problem(reader, "the checksum of the chunk at byte %zu is wrong", at);
	}
	if (!check_numbers(reader, at, segment, chunk)) {
		return false;
	}
	reader->file = file;
	reader->payload = bytes_of(payload, len);
	reader->payload_at = at + JOURNAL_HEADER_BYTES;
	reader->last_time_ns = 0;
	return true;
}

/* A field that the body no longer holds reads as zero; one that it holds in part is bad. */
static uint64_t get_number(struct bytes *body)
{
	return bytes_left(body) > 0 ? bytes_varint(body) : 0;
}

static struct bytes_text get_text(struct bytes *body)
{
	return bytes_left(body) > 0 ? bytes_text(body) : (struct bytes_text){"", 0};
}

static bool is_allowed(enum journal_field field, uint64_t number)
{
	switch (field) {
	case JOURNAL_FIELD_ID:
		return number > 0 && number < JOURNAL_ID_END;
	case JOURNAL_FIELD_REFERENCE:
		return number < JOURNAL_ID_END;
	default:
		return true;
	}
}

static bool get_fields(struct bytes *body, struct journal_record *record, uint64_t *last_time_ns)
{
	uint8_t *value = (uint8_t *)&record->segment;
	for (const uint8_t *field = journal_layout[record->type]; *field != 0; field++) {
		if (*field == JOURNAL_FIELD_TEXT) {
			*(struct bytes_text *)(void *)value = get_text(body);
			value += sizeof(struct bytes_text);
			continue;
		}
		uint64_t number = get_number(body);
		if (*field == JOURNAL_FIELD_TIME) {
			*last_time_ns += (uint64_t)buffer_unzigzag(number);
			number = *last_time_ns;
		}
		if (!is_allowed(*field, number)) {
			return false;
		}
		*(uint64_t *)(void *)value = number;
		value += sizeof(uint64_t);
	}
	return !body->bad;
}

/* One run of frames behind the done ones. Returns its length; 0 when it is wrong. */
static size_t get_run(
	struct journal_reader *reader, struct bytes *body, size_t done, size_t frame_count)
{
	uint64_t run = bytes_varint(body);
	uint64_t len = run >> 3;
	uint8_t kind = (uint8_t)(run & 7);
	if (body->bad || len > frame_count - done || kind > JOURNAL_FRAME_EXACT) {
		return 0;
	}
	bool is_id = kind == JOURNAL_FRAME_INTERPRETED || kind == JOURNAL_FRAME_MARKER;
	uint64_t value = done > 0 ? reader->values.items[done - 1] : 0;
	for (size_t i = done; i < done + len; i++) {
		value += (uint64_t)buffer_unzigzag(bytes_varint(body));
		if (body->bad || (is_id && value >= JOURNAL_ID_END)) {
			return 0;
		}
		reader->values.items[i] = value;
		reader->kinds.items[i] = kind;
	}
	return (size_t)len;
}

/* A frame takes at least a byte, so what is left of the body bounds their number before memory is taken for them. */
static bool get_frames(
	struct journal_reader *reader, struct bytes *body, struct journal_stack *stack)
{
	if (stack->frame_count > bytes_left(body)) {
		return false;
	}
	size_t frame_count = (size_t)stack->frame_count;
	if (!VEC_RESERVE(&reader->values, frame_count) || !VEC_RESERVE(&reader->kinds, frame_count)) {
		return problem(reader, "no memory for a stack of %zu frames", frame_count);
	}
	for (size_t done = 0; done < frame_count;) {
		size_t len = get_run(reader, body, done, frame_count);
		if (len == 0) {
			return false;
		}
		done += len;
	}
	stack->values = reader->values.items;
	stack->kinds = reader->kinds.items;
	return true;
}

static bool decode(struct journal_reader *reader, struct bytes *body, struct journal_record *record)
{
	if (!get_fields(body, record, &reader->last_time_ns)) {
		return false;
	}
	switch (record->type) {
	case JOURNAL_SEGMENT:
		return record->segment.version == JOURNAL_VERSION ||
			   problem(reader,
				   "the journal is of version %" PRIu64 ", this reader knows version %d",
				   record->segment.version, JOURNAL_VERSION);
	case JOURNAL_STACK:
		return get_frames(reader, body, &record->stack);
	default:
		return true;
	}
}

/* Reads the next record of the payload. *is_known: it is one that the caller gets. */
static bool read_record(
	struct journal_reader *reader, struct journal_record *record, bool *is_known)
{
	size_t at = reader->payload_at + reader->payload.pos;
	uint8_t type = bytes_u8(&reader->payload);
	uint64_t len = bytes_varint(&reader->payload);
	const uint8_t *bytes = NULL;
	if (!reader->payload.bad && len <= bytes_left(&reader->payload)) {
		bytes = bytes_take(&reader->payload, (size_t)len);
	}
	if (bytes == NULL) {
		return problem(reader, "the record at byte %zu is longer than its chunk", at);
	}
	if (reader->has_ended) {
		return problem(reader, "the record at byte %zu follows the END record", at);
	}
	if ((type == JOURNAL_SEGMENT) != reader->wants_segment) {
		return problem(reader, "the record at byte %zu is of type %u, which cannot stand %s", at,
			type, reader->wants_segment ? "first in a segment" : "within a segment");
	}
	*is_known = type > 0 && type < JOURNAL_TYPES;
	if (!*is_known) {
		return true;
	}
	struct journal_record decoded = {.type = (enum journal_type)type};
	struct bytes body = bytes_of(bytes, (size_t)len);
	if (!decode(reader, &body, &decoded)) {
		return reader->problem[0] != '\0'
				   ? false
				   : problem(reader, "the record of type %u at byte %zu contradicts the format",
						 type, at);
	}
	reader->wants_segment = false;
	reader->has_ended = type == JOURNAL_END;
	*record = decoded;
	return true;
}

enum journal_result journal_reader_next(
	struct journal_reader *reader, struct journal_record *record)
{
	bool is_known = false;
	while (!is_known) {
		if (reader->problem[0] != '\0') {
			return JOURNAL_READ_BAD;
		}
		if (bytes_left(&reader->payload) > 0) {
			if (!read_record(reader, record, &is_known)) {
				return JOURNAL_READ_BAD;
			}
		} else if (bytes_left(&reader->file) == 0) {
			return JOURNAL_READ_END;
		} else if (!open_chunk(reader)) {
			return JOURNAL_READ_BAD;
		}
		if (bytes_left(&reader->payload) == 0) {
			reader->good_bytes = reader->file.pos;
		}
	}
	return JOURNAL_READ_RECORD;
}
