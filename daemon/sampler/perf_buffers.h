#ifndef SAMPLER_PERF_BUFFERS_H
#define SAMPLER_PERF_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/error.h"
#include "sampler/perf_ring.h"

/*
 * One mapped ring for each processor. Each belongs to an event that counts nothing and is never enabled, on the calling thread: it lives
 * as long as we want, whatever becomes of the target's threads, and theirs are directed into it (PERF_EVENT_IOC_SET_OUTPUT).
 */
struct perf_buffers {
	struct perf_ring *rings; /* owned */
	int *fds;                /* owned; of the same index */
	size_t count;
	size_t bytes;          /* of all, with their control pages */
	size_t smallest_bytes; /* of one, as it came */
	size_t failures;       /* processors that have none */
};

#define PERF_BUFFERS_DATA_BYTES  (256 * 1024)
#define PERF_BUFFERS_LEAST_BYTES (16 * 1024)

/* For samples with copies of stacks: what is written in so many milliseconds at that rate fits, within these bounds. */
#define PERF_BUFFERS_HOLD_MS      50
#define PERF_BUFFERS_COPIES_LEAST (2 * 1024 * 1024)
#define PERF_BUFFERS_COPIES_MOST  (16 * 1024 * 1024)
#define PERF_BUFFERS_COPIES_ALL                                                                    \
	(64 * 1024 * 1024) /* of all rings together, as long as each has the least */

/* A size for perf_buffers_open; sample_bytes: with the largest copy that may be asked for. */
size_t perf_buffers_for_copies(uint64_t hz, size_t sample_bytes, size_t rings);

/* Takes at most half of the memory that may still be locked; shrinks when refused. Errors: limit_exceeded. */
bool perf_buffers_open(struct perf_buffers *buffers, const int *cpus, size_t count,
	size_t wanted_bytes, struct error *err);
/* Zero-initialised is fine. */
void perf_buffers_close(struct perf_buffers *buffers);

#endif
