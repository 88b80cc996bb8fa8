/* swarm N: N threads, one after the other, of a moment each. */
#include <pthread.h>
#include <stdlib.h>

#include "burn.h"

static NOINLINE void swarm_work(void)
{
	burn_rounds(BURN_ROUNDS, 1);
}

static void *run(void *unused)
{
	swarm_work();
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 100;

	for (int i = 0; i < count; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, run, NULL) != 0) {
			return 1;
		}
		pthread_join(thread, NULL);
	}
	return 0;
}
