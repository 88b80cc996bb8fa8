/*
 * moved: works in a chain of calls without frame pointers (main, outer, middle, leaf), then copies the code of it to memory without a file in
 * the same place, as programs do that want it on large pages, and works on. Then it puts other code there, and works on in that.
 *
 * Prints how many milliseconds leaf() took before and behind the move, and the other code.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "burn.h"

#ifdef __clang__
#define MOVED __attribute__((noinline, section("text_moved")))
#else
#define MOVED __attribute__((noinline, no_reorder, section("text_moved")))
#endif

static uint64_t spent_ns;

/* First in its section, and on a page of its own from here to last(). */
__attribute__((aligned(4096))) MOVED static void leaf(uint64_t rounds)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	burn_rounds(rounds, 3);
	spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	KEEP_FRAME();
}

MOVED static void middle(uint64_t rounds)
{
	char taken[200];

	__asm__ volatile("" ::"r"(taken) : "memory");
	leaf(rounds);
	__asm__ volatile("" ::"r"(taken) : "memory");
}

MOVED static void outer(uint64_t rounds)
{
	middle(rounds);
	KEEP_FRAME();
}

__attribute__((aligned(4096))) MOVED static void last(void)
{
	KEEP_FRAME();
}

static uint64_t work(void (*run)(uint64_t rounds), unsigned ms)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000;

	spent_ns = 0;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		run(20 * BURN_ROUNDS);
	}
	return spent_ns / 1000000;
}

static int replace(char *place, const char *code, size_t bytes)
{
	char *there = mmap(place, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (there != place) {
		return 1;
	}
	memcpy(there, code, bytes);
	return mprotect(place, bytes, PROT_READ | PROT_EXEC);
}

int main(void)
{
	static char copy[65536];
	char *place = (char *)leaf;
	size_t bytes = (size_t)((char *)last - place);
	/* mov rax, rdi; 1: dec rax; jnz 1b; ret — with a frame of its own, of which nothing tells: push rdi … pop rdi */
	static const unsigned char other[] = {
		0x57, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5f, 0xc3};

	if (bytes == 0 || bytes > sizeof(copy)) {
		return 2; /* this compiler has put them elsewhere */
	}
	last();
	uint64_t before = work(outer, 150);

	memcpy(copy, place, bytes);
	if (replace(place, copy, bytes) != 0) {
		return 1;
	}
	uint64_t behind = work(outer, 300);

	memset(copy, 0xcc, bytes);
	memcpy(copy, other, sizeof(other));
	if (replace(place, copy, bytes) != 0) {
		return 1;
	}
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < 10; i++) {
		leaf(200 * BURN_ROUNDS);
	}
	printf("%llu %llu %llu\n", (unsigned long long)before, (unsigned long long)behind,
		(unsigned long long)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1000000);
	return 0;
}
