#ifndef TESTS_SUPPORT_RECORDED_H
#define TESTS_SUPPORT_RECORDED_H

#include <stdint.h>

#include "profile/journal.h"

/*
 * A journal as a test wants it: one call a record, chunks sealed on demand. Out of memory aborts. Zero is an empty journal; recorded_begin
 * comes first, recorded_seal last (it may be called between).
 */
struct recorded {
	struct buffer bytes; /* sealed chunks */
	struct buffer payload;
	uint64_t last_time_ns;
	uint32_t segment, chunk;
};

struct recorded_frame {
	uint64_t value;
	uint8_t kind;
};

void recorded_finish(struct recorded *recorded);
/* A new segment with its SEGMENT record. */
void recorded_begin(struct recorded *recorded);
void recorded_add(struct recorded *recorded, const struct journal_record *record);
void recorded_seal(struct recorded *recorded);

void recorded_text(struct recorded *recorded, uint64_t id, const char *text);
/* "cpu", nanoseconds; name_id becomes a string. */
void recorded_metric(struct recorded *recorded, uint64_t id, uint64_t name_id, uint64_t period);
void recorded_process(struct recorded *recorded, uint64_t pid, uint64_t parent, uint64_t name);
void recorded_thread(struct recorded *recorded, uint64_t pid, uint64_t tid, uint64_t name);
void recorded_image(struct recorded *recorded, uint64_t id, uint64_t kind, uint64_t path);
void recorded_map(struct recorded *recorded, uint64_t pid, uint64_t start, uint64_t length,
	uint64_t file_offset, uint64_t image);
/* frames[0] is the leaf. */
void recorded_stack(struct recorded *recorded, uint64_t id, uint64_t pid, uint64_t end,
	const struct recorded_frame *frames, size_t count);
/* count samples of metric 1. */
void recorded_samples(struct recorded *recorded, uint64_t tid, uint64_t stack, unsigned count);

#endif
