#include "bench/spin.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "protocol/clock.h"

#define COPIED_BYTES 65536

static uint32_t next_random(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

/* The two calls are at different places, so that every way down is another stack. */
__attribute__((noinline)) static uint32_t descend(int depth, uint32_t way, uint32_t *seed)
{
	uint32_t sum = depth;
	if (depth == 0) {
		for (int i = 0; i < 20000; i++) {
			sum += next_random(seed);
		}
	} else if (way & 1) {
		sum += descend(depth - 1, way >> 1, seed);
	} else {
		sum ^= descend(depth - 1, way >> 1, seed);
	}
	__asm__ volatile("" : "+r"(sum)); /* no call is the last thing done */
	return sum;
}

static void *work(void *context)
{
	uint32_t seed = (uint32_t)(uintptr_t)context;
	for (;;) {
		uint32_t choice = next_random(&seed) >> 16;
		descend(10 + 4 * (int)(choice % 8), choice % 8, &seed);
	}
	return NULL;
}

pid_t spin_busy(size_t threads)
{
	pid_t child = fork();
	if (child != 0) {
		return child;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* On stacks of their own: below ours are the frames of who measures, whatever is in them. */
	for (uintptr_t i = 0; i < threads; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, work, (void *)i);
	}
	for (;;) {
		pause();
	}
}

struct spin_holes *spin_holes_create(void)
{
	void *area = mmap(NULL, sizeof(struct spin_holes), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return area == MAP_FAILED ? NULL : area;
}

void spin_holes_destroy(struct spin_holes *holes)
{
	if (holes) {
		munmap(holes, sizeof(*holes));
	}
}

__attribute__((noinline)) static int watch(struct spin_holes *holes, int frames)
{
	int done = 0;
	if (frames > 0) {
		done = watch(holes, frames - 1) + 1;
		__asm__ volatile("" : "+r"(done));
		return done;
	}
	uint64_t before = clock_monotonic_ns();
	while (!holes->must_end) {
		uint64_t now = clock_monotonic_ns();
		uint32_t count = holes->count;
		if (now - before > SPIN_HOLE_NS && count < SPIN_HOLES_MAX) {
			holes->holes[count] = (struct spin_hole){before, now};
			holes->count = count + 1;
			now = clock_monotonic_ns();
		}
		before = now;
	}
	return done;
}

pid_t spin_watch(struct spin_holes *holes, int cpu, int frames)
{
	pid_t child = fork();
	if (child != 0) {
		return child;
	}
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setaffinity(0, sizeof(one), &one);
	/* Above it there is as much stack as is copied. */
	char above[COPIED_BYTES];
	memset(above, 1, sizeof(above));
	__asm__ volatile("" : : "r"(above) : "memory");
	watch(holes, frames);
	_exit(0);
}
