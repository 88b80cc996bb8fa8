/*
 * client/gpu/profd_gpu.h without any GPU: says what the calls return ("armed A start B stop C error TEXT") and, with a number as argument, what that many of
 * each cost: "start_ns X stop_ns Y".
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/gpu/profd_gpu.h"

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, refused = 0;
	int armed = profd_gpu_is_armed(), start = profd_gpu_start("x"), stop = profd_gpu_stop();
	printf("armed %d start %d stop %d error %s\n", armed, start, stop, profd_gpu_error());
	double begun = now_ns();
	for (unsigned long i = 0; i < count; i++) {
		refused += profd_gpu_start("x") != 0;
		__asm__ volatile("" ::: "memory");
	}
	double between = now_ns();
	for (unsigned long i = 0; i < count; i++) {
		refused += profd_gpu_stop() != 0;
		__asm__ volatile("" ::: "memory");
	}
	double ended = now_ns();
	if (count > 0) {
		printf("start_ns %.2f stop_ns %.2f\n", (between - begun) / (double)count,
			(ended - between) / (double)count);
	}
	return refused == 2 * count ? 0 : 1;
}
