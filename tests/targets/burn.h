#ifndef TARGETS_BURN_H
#define TARGETS_BURN_H

#include <stdint.h>
#include <time.h>

/*
 * CPU time for the targets to spend. Inlined, so that a function that burns is itself the leaf of its samples; the clock
 * is asked so seldom that its own time does not count.
 */
#define BURN_ROUNDS 100000 /* some 100 µs */

/* Whoever is profiled stays a frame of its own, in an optimized build too. */
#define NOINLINE __attribute__((noinline))

#define INLINE static inline __attribute__((always_inline, unused))

INLINE uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Each round needs the result of the one before, so that no compiler makes it shorter. Something on the stack, because gcc
 * gives no frame to a leaf that needs none. */
INLINE void burn_rounds(uint64_t rounds, uint64_t first)
{
	volatile uint64_t on_the_stack = first;
	uint64_t seed = on_the_stack;

	for (uint64_t i = 0; i < rounds; i++) {
		seed = (seed ^ i) * 0x9e3779b97f4a7c15u;
		__asm__ volatile("" : "+r"(seed));
	}
}

/* So much CPU time of this thread. */
INLINE void burn_ms(unsigned ms)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000;

	do {
		burn_rounds(BURN_ROUNDS, ms);
	} while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

/* Before a return: the last call is no jump then. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

#endif
