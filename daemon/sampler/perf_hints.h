#ifndef SAMPLER_PERF_HINTS_H
#define SAMPLER_PERF_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sampler/perf_buffers.h"

/*
 * Wakes the sampling thread as soon as a program maps code. The records of that stand in the rings (perf_buffers.h), which are read a
 * few times a second; by then a file may be deleted, or gone with the process that had it in its container. So each processor gets one
 * more event without samples, whose small ring wakes us at its first record. Records that do not fit there are no loss: all are in
 * the other rings too, and count there.
 *
 * For a program that begins behind its gate. A program that runs already has its mappings told at once, and events for each of
 * its threads and processors would cost more descriptors than they are worth. Without hints (no descriptor, no memory) everything works, later.
 */
struct perf_hints {
	int *fds;                /* owned; readable when code was mapped */
	struct perf_ring *rings; /* owned; of the same index */
	size_t count;
};

/* pid waits behind its gate; an event on each processor that has a ring. Never fails: count may be 0. */
void perf_hints_open(struct perf_hints *hints, pid_t pid, const struct perf_buffers *buffers);
void perf_hints_close(struct perf_hints *hints);

/* Tells each record to take; scratch as for perf_ring_take. True when there was one. Sampling thread. */
bool perf_hints_read(struct perf_hints *hints, uint8_t *scratch,
	void (*take)(const void *context, const struct perf_event_header *header), const void *context);

#endif
