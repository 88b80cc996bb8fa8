#include "sampler/perf_ring.h"

#include <string.h>

void perf_ring_refresh(struct perf_ring *ring)
{
	if (ring->page) {
		ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	}
}

void perf_ring_release(struct perf_ring *ring)
{
	if (ring->page) {
		__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	}
}

/* Records and the ring are 8-byte aligned: an aligned word never runs over the end. */
static uint64_t word(const struct perf_ring *ring, uint64_t position)
{
	uint64_t value;
	memcpy(&value, ring->data + (position & (ring->size - 1)), sizeof(value));
	return value;
}

static struct perf_event_header header_at(const struct perf_ring *ring, uint64_t position)
{
	uint64_t value = word(ring, position);
	struct perf_event_header header;
	memcpy(&header, &value, sizeof(header));
	return header;
}

enum perf_peek perf_ring_peek(const struct perf_ring *ring, uint64_t *time_ns)
{
	uint64_t left = ring->head - ring->tail;
	if (left == 0) {
		return PERF_PEEK_EMPTY;
	}
	if (left > ring->size || left < sizeof(struct perf_event_header) || ring->tail % 8 != 0) {
		return PERF_PEEK_BROKEN;
	}
	struct perf_event_header header = header_at(ring, ring->tail);
	if (header.size < sizeof(header) || header.size > left || header.size % 8 != 0) {
		return PERF_PEEK_BROKEN;
	}
	*time_ns = 0;
	if (header.type == PERF_RECORD_SAMPLE) {
		*time_ns = header.size >= 24 ? word(ring, ring->tail + 16) : 0;
	} else if (header.size >= 24) {
		*time_ns = word(ring, ring->tail + header.size - 8);
	}
	return PERF_PEEK_RECORD;
}

const struct perf_event_header *perf_ring_take(struct perf_ring *ring, uint8_t *scratch)
{
	uint64_t place = ring->tail & (ring->size - 1);
	size_t bytes = header_at(ring, ring->tail).size;
	ring->tail += bytes;
	if (place + bytes <= ring->size) {
		return (const void *)(ring->data + place);
	}
	size_t first = (size_t)(ring->size - place);
	memcpy(scratch, ring->data + place, first);
	memcpy(scratch + first, ring->data, bytes - first);
	return (const void *)scratch;
}

static void sift_down(struct perf_merge_slot *heap, size_t len, size_t at)
{
	struct perf_merge_slot moved = heap[at];
	for (size_t child = 2 * at + 1; child < len; child = 2 * at + 1) {
		if (child + 1 < len && heap[child + 1].time_ns < heap[child].time_ns) {
			child++;
		}
		if (moved.time_ns <= heap[child].time_ns) {
			break;
		}
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

/* False when the ring has nothing more to say. */
static bool next_time(struct perf_merge *merge, struct perf_ring *ring, uint64_t *time_ns)
{
	switch (perf_ring_peek(ring, time_ns)) {
	case PERF_PEEK_RECORD:
		return true;
	case PERF_PEEK_BROKEN:
		ring->tail = ring->head;
		merge->broken(merge->context, ring->cpu);
		return false;
	default:
		return false;
	}
}

static size_t fill_heap(struct perf_merge *merge)
{
	size_t len = 0;
	for (size_t i = 0; i < merge->count; i++) {
		perf_ring_refresh(&merge->rings[i]);
	}
	for (size_t i = 0; i < merge->count; i++) {
		uint64_t time_ns;
		if (next_time(merge, &merge->rings[i], &time_ns)) {
			merge->heap[len++] = (struct perf_merge_slot){time_ns, i};
		}
	}
	for (size_t i = len / 2; i-- > 0;) {
		sift_down(merge->heap, len, i);
	}
	return len;
}

void perf_merge_drain(struct perf_merge *merge, uint64_t until_ns)
{
	struct perf_merge_slot *heap = merge->heap;
	size_t len = fill_heap(merge);
	while (len > 0 && heap[0].time_ns <= until_ns) {
		struct perf_ring *ring = &merge->rings[heap[0].ring];
		const struct perf_event_header *header = perf_ring_take(ring, merge->scratch);
		merge->record(merge->context, heap[0].time_ns, header, ring->cpu);
		if (!next_time(merge, ring, &heap[0].time_ns)) {
			heap[0] = heap[--len];
		}
		sift_down(heap, len, 0);
	}
	for (size_t i = 0; i < merge->count; i++) {
		perf_ring_release(&merge->rings[i]);
	}
}
