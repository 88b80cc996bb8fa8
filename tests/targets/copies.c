/*
 * copies MODE MS: computes for MS of CPU time without frame pointers, always at the end of one and the same chain of calls: main, outer, middle,
 * large, leaf. What differs is how much stack large() takes, all of it touched:
 *
 *   small    1 KiB: fits whatever is copied
 *   grow     40 KiB: more than is copied at first
 *   mixed    1 KiB and 100 KiB in turn: what is longer than any copy has the callers of what is not
 *   other    1 KiB for a tenth of the time, then 100 KiB with another caller in place of outer(), which is never seen in a stack that is whole
 *
 * Prints how many milliseconds leaf() took at the end of each of the two.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "burn.h"

#define KEEP(memory) __asm__ volatile("" ::"r"(memory) : "memory")

static uint64_t spent_ns[2];

static NOINLINE void leaf(int is_large)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	burn_rounds(20 * BURN_ROUNDS, 3);
	spent_ns[is_large] += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	KEEP_FRAME();
}

static NOINLINE void large(size_t bytes, int is_large)
{
	char *memory = alloca(bytes);

	memset(memory, 1, bytes);
	KEEP(memory);
	leaf(is_large);
	KEEP(memory);
}

static NOINLINE void middle(size_t bytes, int is_large)
{
	large(bytes, is_large);
	KEEP_FRAME();
}

static NOINLINE void outer(size_t bytes, int is_large)
{
	middle(bytes, is_large);
	KEEP_FRAME();
}

static NOINLINE void other(size_t bytes, int is_large)
{
	middle(bytes, is_large);
	KEEP_FRAME();
}

/* How much large() takes in a turn. */
static size_t bytes_of(const char *mode, int turn, int is_late)
{
	if (strcmp(mode, "grow") == 0) {
		return 40 << 10;
	}
	int is_long =
		(strcmp(mode, "mixed") == 0 && turn % 2) || (strcmp(mode, "other") == 0 && is_late);

	return is_long ? 100 << 10 : 1 << 10;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint64_t span = strtoull(argc > 2 ? argv[2] : "500", NULL, 10) * 1000000;
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = begin;

	for (int turn = 0; now < begin + span; turn++, now = clock_ns(CLOCK_THREAD_CPUTIME_ID)) {
		int is_late = now - begin > span / 10;
		size_t bytes = bytes_of(mode, turn, is_late);

		(is_late && strcmp(mode, "other") == 0 ? other : outer)(bytes, bytes > 1 << 10);
	}
	printf("%llu %llu\n", (unsigned long long)spent_ns[0] / 1000000,
		(unsigned long long)spent_ns[1] / 1000000);
	return 0;
}
