/*
 * A libFuzzer target over the journal's reader: no bytes may make it read beyond them, loop, or take memory out of
 * proportion. A CRC keeps a fuzzer away from the records, so the input is read twice: as a file as it is, and with its
 * first bytes saying how the rest is cut into chunks whose headers are made right.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/journal.h"
#include "protocol/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t touch(struct bytes_text text)
{
	uint64_t sum = text.len;
	for (size_t i = 0; i < text.len; i++) {
		sum += (uint8_t)text.data[i];
	}
	return sum;
}

/* Reads whatever the record points to, and what the reader promises about it. */
static uint64_t touch_record(const struct journal_record *record)
{
	uint64_t sum = 0;
	switch (record->type) {
	case JOURNAL_SEGMENT:
		return touch(record->segment.machine) + touch(record->segment.system);
	case JOURNAL_CAPTURE:
		return touch(record->capture.json);
	case JOURNAL_STRING:
		return touch(record->string.text);
	case JOURNAL_IMAGE:
		return touch(record->image.build_id);
	case JOURNAL_STACK:
		for (size_t i = 0; i < record->stack.frame_count; i++) {
			sum += record->stack.values[i];
			if (record->stack.kinds[i] > JOURNAL_FRAME_EXACT) {
				abort();
			}
		}
		return sum;
	default:
		return 0;
	}
}

/* What was read can be written again. */
static void write_again(const struct journal_record *record, struct buffer *again)
{
	uint64_t time_ns = 0;
	again->len = 0;
	if (!journal_encode(again, record, &time_ns) || again->data[0] != record->type) {
		abort();
	}
}

static volatile uint64_t sink;

static void read_file(const uint8_t *data, size_t len)
{
	struct journal_reader *reader = journal_reader_create(data, len);
	if (reader == NULL) {
		return;
	}
	struct buffer again = {0};
	struct journal_record record;
	enum journal_result result;
	size_t records = 0;
	while ((result = journal_reader_next(reader, &record)) == JOURNAL_READ_RECORD) {
		sink = touch_record(&record);
		write_again(&record, &again);
		if (++records > len) {
			abort();
		}
	}
	size_t good_bytes = journal_reader_good_bytes(reader);
	bool is_bad = journal_reader_problem(reader)[0] != '\0';
	if (good_bytes > len || is_bad != (result == JOURNAL_READ_BAD) ||
		(!is_bad && good_bytes != len)) {
		abort();
	}
	buffer_finish(&again);
	journal_reader_destroy(reader);
}

/* The first byte is the number of chunks, up to 4; each takes its share of the rest. */
static void read_sealed(const uint8_t *data, size_t len)
{
	size_t chunks = 1 + data[0] % 4;
	size_t share = (len - 1) / chunks;
	if (share > LIMIT_CHUNK_BYTES) {
		return;
	}
	size_t file_len = chunks * (JOURNAL_HEADER_BYTES + share);
	uint8_t *file = malloc(file_len);
	if (file == NULL) {
		return;
	}
	for (size_t i = 0; i < chunks; i++) {
		uint8_t *header = file + i * (JOURNAL_HEADER_BYTES + share);
		if (share > 0) {
			memcpy(header + JOURNAL_HEADER_BYTES, data + 1 + i * share, share);
		}
		journal_seal(header, 0, (uint32_t)i, header + JOURNAL_HEADER_BYTES, (uint32_t)share);
	}
	read_file(file, file_len);
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	read_file(data, len);
	if (len > 0) {
		read_sealed(data, len);
	}
	return 0;
}
