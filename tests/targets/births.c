/*
 * A thread "before" computes from the start; on SIGUSR1 another, "after", is born. Both go on until SIGTERM ends the program.
 * With an argument the first thread ends at once, as some programs do, and only "before" is left.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "burn.h"

static NOINLINE void work_before(void)
{
	burn_ms(3600000);
}

static NOINLINE void work_after(void)
{
	burn_ms(3600000);
}

static void *run_before(void *unused)
{
	prctl(PR_SET_NAME, "before");
	work_before();
	return unused;
}

static void *run_after(void *unused)
{
	prctl(PR_SET_NAME, "after");
	work_after();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	pthread_create(&thread, NULL, run_before, NULL);
	puts("up");
	fflush(stdout);
	(void)argv;
	if (argc > 1) {
		pthread_exit(NULL);
	}
	sigwait(&signals, &number);
	pthread_create(&thread, NULL, run_after, NULL);
	pthread_join(thread, NULL);
	return 0;
}
