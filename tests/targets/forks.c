/*
 * Forks without exec and computes in both: parent_work() for 300 ms, child_work() for 600 ms. The child prints its own CPU time and ends
 * with 7; the parent prints its own and how the child ended.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

static NOINLINE void parent_work(void)
{
	burn_ms(300);
}

static NOINLINE void child_work(void)
{
	burn_ms(600);
}

static int run_child(void)
{
	child_work();
	printf("child %llu\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	return 7;
}

int main(void)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		_exit(run_child());
	}
	parent_work();
	waitpid(child, &status, 0);
	printf("parent %llu\nended %d\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	return 0;
}
