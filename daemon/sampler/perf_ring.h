#ifndef SAMPLER_PERF_RING_H
#define SAMPLER_PERF_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

/*
 * The kernel's ring buffers of records (perf_event_open(2), "MMAP layout"), one per CPU, and their merging into one stream
 * ordered by time. Reads bytes only: the rings can be built by hand. One thread.
 *
 *   tail ──────────────► head        both only rise; the place is the number modulo size
 *   | record | record | record |     each 8-byte aligned; one may run over the end and go on at the beginning
 *
 * Records carry their time: a sample behind pid and tid, every other one at its end (sample_id_all with TID and TIME).
 */

#define PERF_RING_RECORD_BYTES 65536 /* header.size is 16 bits wide */

struct perf_ring {
	struct perf_event_mmap_page *page; /* borrowed; NULL: head is set by hand */
	const uint8_t *data;               /* borrowed; 8-byte aligned */
	uint64_t size;                     /* a power of two */
	uint64_t head, tail;               /* what is there to read */
	int cpu;
};

enum perf_peek {
	PERF_PEEK_EMPTY,
	PERF_PEEK_RECORD,
	PERF_PEEK_BROKEN, /* a header that cannot be: nothing behind it can be found */
};

/* Takes over how far the kernel has written, and tells it how far we have read. */
void perf_ring_refresh(struct perf_ring *ring);
void perf_ring_release(struct perf_ring *ring);

/* The time of the next record; 0 when it is too short to have one. Nothing is consumed. */
enum perf_peek perf_ring_peek(const struct perf_ring *ring, uint64_t *time_ns);

/* Consumes a record that peek has seen. Valid until the release; scratch (PERF_RING_RECORD_BYTES, 8-byte aligned) takes one
 * that runs over the end. */
const struct perf_event_header *perf_ring_take(struct perf_ring *ring, uint8_t *scratch);

struct perf_merge_slot {
	uint64_t time_ns;
	size_t ring;
};

struct perf_merge {
	struct perf_ring *rings; /* borrowed */
	size_t count;
	struct perf_merge_slot *heap; /* borrowed; room for count */
	uint8_t *scratch;             /* borrowed */
	void *context;
	void (*record)(
		void *context, uint64_t time_ns, const struct perf_event_header *header, int cpu);
	/* The rest of the ring was thrown away. */
	void (*broken)(void *context, int cpu);
};

/* Calls record for everything up to until_ns, in the order of time, and leaves the rest in the rings. */
void perf_merge_drain(struct perf_merge *merge, uint64_t until_ns);

#endif
