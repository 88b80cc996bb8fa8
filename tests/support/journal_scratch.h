#ifndef TESTS_SUPPORT_JOURNAL_SCRATCH_H
#define TESTS_SUPPORT_JOURNAL_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "profile/journal_writer.h"

/* Journals that a writer puts into files without a name, and what is in them. Whatever goes wrong fails the test. */
struct scratch {
	int fd;   /* the writer's, until there is one; -1 */
	int file; /* the same file, for the test; -1: it cannot be read */
	struct journal_writer *writer;
	uint8_t *bytes; /* as last read */
	size_t len;
};

/* The header of a chunk. */
struct header {
	uint32_t magic, len, segment, number, crc, reserved;
};

/* cmocka's. */
int scratch_set_up(void **state);
int scratch_tear_down(void **state);

/* In place of what there was: a new file; what the test opened, with or without (-1) a file to read. */
void scratch_open(struct scratch *scratch);
void scratch_take(struct scratch *scratch, int fd, int file);
/* The writer, which takes fd. */
void scratch_create(struct scratch *scratch, uint64_t max_bytes);
/* The writer, with its first segment begun. */
void scratch_begin(struct scratch *scratch, uint64_t max_bytes);
void scratch_append(struct scratch *scratch, const struct journal_record *record);
/* The writer ends as it should; what is in the file stands in bytes. */
void scratch_finish(struct scratch *scratch);
/* Ends the writer, which must fail and say why; what is in the file stands in bytes. */
void scratch_fail(struct scratch *scratch, bool sync, struct error *err);
void scratch_read(struct scratch *scratch);
size_t scratch_size(const struct scratch *scratch);

/* A segment's record, and samples with times one after the other. */
extern const struct journal_record scratch_segment;
struct journal_record scratch_sample(uint64_t number);
struct journal_record scratch_string(const char *text, size_t len);

/* Walks the chunks by their lengths, checking each CRC. Returns how many there are; they have to fill the file. */
size_t scratch_headers(const struct scratch *scratch, struct header *headers, size_t room);
/* The bytes are a good journal; its samples are 0, 1, 2 … Returns how many. */
size_t scratch_count_samples(const struct scratch *scratch);

void scratch_sleep_ms(long ms);

#endif
