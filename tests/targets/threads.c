/*
 * Eight named threads, each in a function of its own, and a ninth that is born when they have ended. For each it prints its name,
 * its CPU time and where its function returns to: library and the address in it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "burn.h"

struct worker {
	const char *name;
	void (*work)(unsigned ms);
	unsigned ms;
	uint64_t cpu_ns;
	void *return_address;
	pthread_t thread;
};

#define WORK(number)                                                                               \
	static NOINLINE void work_##number(unsigned ms)                                                \
	{                                                                                              \
		burn_ms(ms);                                                                               \
	}

WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)
WORK(late)
WORK(main)

static void *run_worker(void *argument)
{
	struct worker *worker = argument;

	worker->return_address = __builtin_return_address(0);
	prctl(PR_SET_NAME, worker->name);
	worker->work(worker->ms);
	worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void print(const struct worker *worker)
{
	Dl_info place = {0};

	dladdr(worker->return_address, &place);
	printf("%s %llu %s 0x%llx\n", worker->name, (unsigned long long)worker->cpu_ns, place.dli_fname,
		(unsigned long long)((char *)worker->return_address - (char *)place.dli_fbase));
}

int main(void)
{
	static struct worker first = {.name = "threads", .work = work_main, .ms = 100};
	static struct worker workers[] = {
		{.name = "worker-0", .work = work_0, .ms = 60},
		{.name = "worker-1", .work = work_1, .ms = 80},
		{.name = "worker-2", .work = work_2, .ms = 100},
		{.name = "worker-3", .work = work_3, .ms = 120},
		{.name = "worker-4", .work = work_4, .ms = 140},
		{.name = "worker-5", .work = work_5, .ms = 160},
		{.name = "worker-6", .work = work_6, .ms = 180},
		{.name = "worker-7", .work = work_7, .ms = 200},
	};
	static struct worker late = {.name = "late", .work = work_late, .ms = 100};
	const size_t count = sizeof(workers) / sizeof(workers[0]);

	for (size_t i = 0; i < count; i++) {
		pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]);
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		print(&workers[i]);
	}
	first.return_address = __builtin_return_address(0);
	first.work(first.ms);
	first.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	print(&first);
	pthread_create(&late.thread, NULL, run_worker, &late);
	pthread_join(late.thread, NULL);
	print(&late);
	return 0;
}
