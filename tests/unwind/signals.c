/*
 * Busy in a signal handler on an alternate stack, in one on its own stack, in the vDSO, and between them.
 *
 *   unwind-signals SECONDS
 *
 * The alternate stack is a part of main's frame, so that a copy of it has the interrupted frames as well.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile uint64_t sink;
static volatile sig_atomic_t handled;

__attribute__((noinline)) static void work(uint64_t seed, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
	sink += seed;
}

__attribute__((noinline)) static void handle_deep(int depth)
{
	if (depth > 0) {
		handle_deep(depth - 1);
		sink++;
	} else {
		work(sink, 300000);
	}
}

static void handle(int number)
{
	(void)number;
	handled++;
	handle_deep(5);
}

__attribute__((noinline)) static void tell_time(void)
{
	struct timespec now;
	struct timeval other;

	for (int i = 0; i < 2000; i++) {
		clock_gettime(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
		gettimeofday(&other, NULL);
		sink += (uint64_t)now.tv_nsec + (uint64_t)other.tv_usec + (uint64_t)time(NULL);
	}
}

__attribute__((noinline)) static void descend(int depth)
{
	if (depth > 0) {
		descend(depth - 1);
		sink++;
		return;
	}
	work(sink, 20000);
	tell_time();
}

int main(int argc, char **argv)
{
	static const struct itimerval often = {{0, 5000}, {0, 5000}};
	uint64_t alternate[4096];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	memset(alternate, 0,
		sizeof(
			alternate)); /* the kernel copies a stack only up to the first page that was never touched */
	sigaltstack(&stack, NULL);
	sigaction(SIGALRM, &action, NULL);
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (clock() < end) {
		descend(20);
		raise(SIGUSR1);
	}
	return handled == 0;
}
