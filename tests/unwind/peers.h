#ifndef TESTS_UNWIND_PEERS_H
#define TESTS_UNWIND_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/replay.h"

/* Two other unwinders, over the same copy of the same stack. */
#define PEER_FRAMES 4096

struct peer_stack {
	uint64_t addresses[PEER_FRAMES];
	size_t count;
};

struct peer; /* what one keeps between samples: one process at one moment */

struct peer_ops {
	const char *name;
	bool needs_table; /* finds nothing in images without .eh_frame_hdr */
	/* Walks; peer is kept for the next call. */
	void (*walk)(struct peer **peer, const struct replay_process *process,
		const struct corpus_event *event, struct peer_stack *stack);
	void (*destroy)(struct peer *peer);
};

extern const struct peer_ops peer_libdw;     /* elfutils */
extern const struct peer_ops peer_libunwind; /* nongnu */

#endif
