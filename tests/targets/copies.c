/*
 * copies MODE MS: computes for MS of CPU time without frame pointers, always at the end of one and the same chain of calls: main, outer, middle,
 * large, leaf. What differs is how much stack large() takes, all of it touched:
 *
 *   small    1 KiB: fits whatever is copied
 *   grow     40 KiB: more than is copied at first
 *   mixed    1 KiB and 100 KiB in turn: what is longer than any copy has the callers of what is not
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

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) +
				   strtoull(argc > 2 ? argv[2] : "500", NULL, 10) * 1000000;

	for (int turn = 0; clock_ns(CLOCK_THREAD_CPUTIME_ID) < end; turn++) {
		int is_large = strcmp(mode, "grow") == 0 || (strcmp(mode, "mixed") == 0 && turn % 2);
		size_t bytes = !is_large ? 1 << 10 : strcmp(mode, "grow") == 0 ? 40 << 10 : 100 << 10;

		outer(bytes, is_large);
	}
	printf("%llu %llu\n", (unsigned long long)spent_ns[0] / 1000000,
		(unsigned long long)spent_ns[1] / 1000000);
	return 0;
}
