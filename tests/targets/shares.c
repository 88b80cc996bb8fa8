/*
 * shares THREADS MS LINGER_MS: each thread computes for MS of its CPU time in heavy() and light(), at about 3:1. At the end it
 * prints what each function took by the kernel's clock of the thread, and the process by that of the process; then it stays for
 * LINGER_MS, so that the process's clock can be read from outside.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "burn.h"

#define MAX_THREADS 16
#define UNIT_ROUNDS 200000

struct worker {
	pthread_t thread;
	uint64_t seed, budget_ns, heavy_ns, light_ns;
};

static NOINLINE void heavy(uint64_t rounds)
{
	burn_rounds(rounds, 3);
}

static NOINLINE void light(uint64_t rounds)
{
	burn_rounds(rounds, 1);
}

/* Half to one and a half units: nothing here keeps step with a sampling period. */
static uint64_t some_rounds(struct worker *worker)
{
	worker->seed = worker->seed * 6364136223846793005u + 1442695040888963407u;
	return UNIT_ROUNDS / 2 + (worker->seed >> 33) % UNIT_ROUNDS;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID), end = now + worker->budget_ns;

	while (now < end) {
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		heavy(3 * some_rounds(worker));
		uint64_t between = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		light(some_rounds(worker));
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		worker->heavy_ns += between - before;
		worker->light_ns += now - between;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	uint64_t heavy_ns = 0, light_ns = 0;
	int count = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < count && i < MAX_THREADS; i++) {
		workers[i].seed = (uint64_t)i + 1;
		workers[i].budget_ns = strtoull(argc > 2 ? argv[2] : "1000", NULL, 10) * 1000000;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < count && i < MAX_THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		heavy_ns += workers[i].heavy_ns;
		light_ns += workers[i].light_ns;
	}
	printf("{\"heavy_ns\": %llu, \"light_ns\": %llu, \"cpu_ns\": %llu}\n",
		(unsigned long long)heavy_ns, (unsigned long long)light_ns,
		(unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	usleep((useconds_t)(argc > 3 ? atoi(argv[3]) : 0) * 1000);
	return 0;
}
