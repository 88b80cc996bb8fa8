/*
 * steady MS STATUS: says "up", computes for MS of CPU time in steady_work(), and ends with STATUS; STATUS "crash": by a write to
 * address 0, without a core file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "burn.h"

static NOINLINE void steady_work(unsigned ms)
{
	burn_ms(ms);
}

static NOINLINE void crash(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	*(volatile int *)NULL = 1;
}

int main(int argc, char **argv)
{
	puts("up");
	fflush(stdout);
	steady_work(argc > 1 ? (unsigned)atoi(argv[1]) : 100);
	if (argc > 2 && strcmp(argv[2], "crash") == 0) {
		crash();
	}
	return argc > 2 ? atoi(argv[2]) : 0;
}
