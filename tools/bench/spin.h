#ifndef BENCH_SPIN_H
#define BENCH_SPIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Targets whose stacks are known, for measuring. Each runs in a child of the caller, which must kill and reap it. */

/* Threads that never rest, in stacks of 10 to 40 frames, some hundreds of them distinct. -1: errno. */
pid_t spin_busy(size_t threads);

/* A hole: the spinning thread did not run between these two moments (CLOCK_MONOTONIC). */
struct spin_hole {
	uint64_t begin_ns, end_ns;
};

#define SPIN_HOLES_MAX 65536
#define SPIN_HOLE_NS   4000 /* shorter ones are noise of the clock */

/* Shared with the child. */
struct spin_holes {
	_Atomic uint32_t count;
	_Atomic int must_end;
	struct spin_hole holes[SPIN_HOLES_MAX];
};

struct spin_holes *spin_holes_create(void);
void spin_holes_destroy(struct spin_holes *holes);
/* One thread on one processor that does nothing but look at the clock, frames deep, and writes down the holes. */
pid_t spin_watch(struct spin_holes *holes, int cpu, int frames);

#endif
