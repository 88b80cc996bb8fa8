#ifndef PROCESS_RING_H
#define PROCESS_RING_H

#include <stddef.h>
#include <stdint.h>

/*
 * The last bytes of a stream, each known by its offset from the stream's first byte. Memory grows with what is kept, up to the
 * most; when memory is out, less is kept. Pure. Zero is the start of a stream of which nothing may be kept: ring_init.
 *
 *   0 … start        gone
 *   start … end      kept, at most `most` bytes
 */
struct ring {
	char *bytes; /* owned */
	size_t capacity, most;
	size_t first; /* where the oldest kept byte is in bytes */
	size_t len;
	uint64_t end; /* the offset behind the newest byte */
};

void ring_init(struct ring *ring, size_t most);
void ring_finish(struct ring *ring);

void ring_append(struct ring *ring, const char *bytes, size_t len);
/* Keeps the last bytes alone, in no more memory than they need. What is appended later may need as much. */
void ring_shrink(struct ring *ring, size_t most);

/* The offset of the oldest kept byte. */
uint64_t ring_start(const struct ring *ring);
/* Copies what is kept from offset on, at most max bytes; offset is from ring_start to end. How many. */
size_t ring_read(const struct ring *ring, uint64_t offset, char *out, size_t max);

#endif
