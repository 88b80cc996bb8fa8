/*
 * brief COUNT MICROSECONDS MILLISECONDS: COUNT threads, one after the other, that compute for MICROSECONDS each, and a first thread that
 * computes for MILLISECONDS. Prints what the kernel said of them: {"brief_ns": of all the brief ones, "cpu_ns": of the process}.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "burn.h"

static uint64_t brief_us;

static NOINLINE void work_briefly(void)
{
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < brief_us * 1000) {
		burn_rounds(1000, brief_us);
	}
	KEEP_FRAME();
}

static void *run(void *cpu_ns)
{
	work_briefly();
	*(uint64_t *)cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static NOINLINE void work_long(unsigned ms)
{
	burn_ms(ms);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 100;
	unsigned ms = argc > 3 ? (unsigned)atoi(argv[3]) : 100;
	uint64_t brief_ns = 0;

	brief_us = argc > 2 ? (uint64_t)atoi(argv[2]) : 100;
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, &brief_ns) != 0) {
			return 1;
		}
		pthread_join(thread, NULL);
	}
	work_long(ms);
	printf("{\"brief_ns\": %llu, \"cpu_ns\": %llu}\n", (unsigned long long)brief_ns,
		(unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
