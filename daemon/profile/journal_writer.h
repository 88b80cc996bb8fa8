#ifndef PROFILE_JOURNAL_WRITER_H
#define PROFILE_JOURNAL_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "profile/journal.h"
#include "protocol/error.h"

/*
 * Appends records to a journal file. One thread (the sampling thread) appends; a thread of the writer's own puts whole chunks
 * on disk, so that a slow disk does not stall sampling. Appending takes no lock except when a chunk is handed
 * over (at CHUNK_BYTES, or by journal_writer_flush).
 *
 * When writing fails (disk full), the file is cut back to its last whole chunk, nothing is written any more, and
 * journal_writer_failed turns true; appending goes on into nowhere. When the disk is slower than the sampling, at most BACKLOG_CHUNKS wait;
 * beyond that the sampler waits, which shows as ring losses.
 * A record that no chunk can hold (LIMIT_CHUNK_BYTES) fails the writer too, as later records may refer to it; what was appended before it is kept.
 */
#define JOURNAL_WRITER_CHUNK_BYTES    (256 * 1024)
#define JOURNAL_WRITER_BACKLOG_CHUNKS 4

struct journal_writer;

/* Takes fd (an empty, writable file). max_bytes: 0 or the size at which journal_writer_is_full turns true. Starts the thread. */
struct journal_writer *journal_writer_create(int fd, uint64_t max_bytes, struct error *err);

/* Writes out what is buffered, syncs when sync is set, ends the thread and closes fd. The first error of its life is
 * returned here. Frees the writer in any case. NULL: true. */
bool journal_writer_destroy(struct journal_writer *writer, bool sync, struct error *err);

/* Appending thread only. begin_segment is the first call; record is its SEGMENT. */
void journal_writer_begin_segment(
	struct journal_writer *writer, const struct journal_record *record);
void journal_writer_append(struct journal_writer *writer, const struct journal_record *record);
/* Hands the current chunk to the disk if it is not empty: call at least every second. */
void journal_writer_flush(struct journal_writer *writer);

/* Any thread. bytes: payload that is on disk or handed over to it, without headers and the chunk being filled. */
bool journal_writer_failed(const struct journal_writer *writer);
bool journal_writer_is_full(const struct journal_writer *writer);
uint64_t journal_writer_bytes(const struct journal_writer *writer);

#endif
