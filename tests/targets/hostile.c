/* Threads and a function with names that mean something to the formats that they are written into. */
#include <pthread.h>
#include <sys/prctl.h>

#include "burn.h"

/* hostile_name.S: a function "bad;name <&'>]]>", which calls the one that it is given. */
extern void (*const hostile_function)(void (*work)(void));

static NOINLINE void honest_work(void)
{
	burn_ms(100);
}

static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	hostile_function(honest_work);
	return NULL;
}

int main(void)
{
	static char names[][16] = {
		"a;b <&\"'>", "two\nlines", "\xff\xfe\xc0\xaf bytes", "]]>\x1b[31m\x01", " 12 34 "};
	const size_t count = sizeof(names) / sizeof(names[0]);
	pthread_t threads[sizeof(names) / sizeof(names[0])];

	for (size_t i = 0; i < count; i++) {
		pthread_create(&threads[i], NULL, run, names[i]);
	}
	for (size_t i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
	}
	return 0;
}
