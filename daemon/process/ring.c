#include "process/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096

void ring_init(struct ring *ring, size_t most)
{
	*ring = (struct ring){.most = most};
}

void ring_finish(struct ring *ring)
{
	free(ring->bytes);
	*ring = (struct ring){.end = ring->end};
}

/* Copies len kept bytes, the first of which is at skip behind the oldest. */
static void copy_out(const struct ring *ring, size_t skip, char *out, size_t len)
{
	if (len == 0) {
		return;
	}
	size_t from = (ring->first + skip) % ring->capacity;
	size_t straight = ring->capacity - from < len ? ring->capacity - from : len;
	memcpy(out, ring->bytes + from, straight);
	memcpy(out + straight, ring->bytes, len - straight);
}

/* Other memory of so many bytes, with the newest that fit. On failure all is as before. */
static void move_to(struct ring *ring, size_t capacity)
{
	char *bytes = malloc(capacity);
	if (bytes == NULL) {
		return;
	}
	size_t kept = ring->len < capacity ? ring->len : capacity;
	copy_out(ring, ring->len - kept, bytes, kept);
	free(ring->bytes);
	ring->bytes = bytes;
	ring->capacity = capacity;
	ring->first = 0;
	ring->len = kept;
}

static void grow(struct ring *ring, size_t need)
{
	size_t capacity = ring->capacity > 0 ? ring->capacity : FIRST_BYTES;
	while (capacity < need && capacity < ring->most) {
		capacity *= 2;
	}
	capacity = capacity < ring->most ? capacity : ring->most;
	if (capacity > ring->capacity) {
		move_to(ring, capacity);
	}
}

void ring_append(struct ring *ring, const char *bytes, size_t len)
{
	ring->end += len;
	if (len > ring->capacity - ring->len) {
		grow(ring, len > ring->most ? ring->most : ring->len + len);
	}
	if (ring->capacity == 0) {
		return;
	}
	if (len > ring->capacity) {
		bytes += len - ring->capacity;
		len = ring->capacity;
	}
	size_t room = ring->capacity - ring->len;
	size_t lost = len > room ? len - room : 0;
	ring->first = (ring->first + lost) % ring->capacity;
	ring->len -= lost;
	size_t at = (ring->first + ring->len) % ring->capacity;
	size_t straight = ring->capacity - at < len ? ring->capacity - at : len;
	memcpy(ring->bytes + at, bytes, straight);
	memcpy(ring->bytes, bytes + straight, len - straight);
	ring->len += len;
}

void ring_shrink(struct ring *ring, size_t most)
{
	ring->most = most;
	size_t kept = ring->len < most ? ring->len : most;
	if (kept == 0) {
		ring_finish(ring);
		ring->most = most;
	} else if (ring->capacity > kept) {
		move_to(ring, kept);
	}
}

uint64_t ring_start(const struct ring *ring)
{
	return ring->end - ring->len;
}

size_t ring_read(const struct ring *ring, uint64_t offset, char *out, size_t max)
{
	assert(offset >= ring_start(ring) && offset <= ring->end);
	size_t skip = (size_t)(offset - ring_start(ring));
	size_t len = ring->len - skip < max ? ring->len - skip : max;
	copy_out(ring, skip, out, len);
	return len;
}
