/*
 * A program that knows its own call chain. Before a call the caller writes the callee's number into a book on the stack, and takes it out after it;
 * nothing walks a stack. The book is found by its mark in a copy of the stack.
 *
 *   unwind-chains SECONDS
 *
 * Built without frame pointers. Who calls is one of ten functions with frames of many forms; which, and how deep, is random.
 */
#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unwind/book.h"

#define NOINLINE __attribute__((noinline, section("chain_code")))

/* The linker's names of the section's ends. */
extern const char __start_chain_code[], __stop_chain_code[];

static struct book *book;
static volatile uint64_t sink;

static NOINLINE uint64_t choose(uint64_t seed);

/* choose, with its entry in the book. */
static inline uint64_t call(uint64_t seed)
{
	book_enter(book, (uintptr_t)choose);
	uint64_t result = choose(seed);

	book_leave(book);
	return result;
}

static uint64_t next(uint64_t seed)
{
	return seed * 6364136223846793005u + 1442695040888963407u;
}

static NOINLINE uint64_t leaf(uint64_t seed)
{
	for (int i = 0; i < 3000; i++) {
		seed = next(seed);
	}
	return seed;
}

static NOINLINE uint64_t plain(uint64_t seed)
{
	return call(seed) + 1;
}

static NOINLINE uint64_t with_room(uint64_t seed)
{
	volatile char room[300];

	room[seed % 300] = 1;
	return call(seed) + (uint64_t)room[seed % 300];
}

static NOINLINE uint64_t with_alloca(uint64_t seed)
{
	char *room = alloca(16 + seed % 100);

	memset(room, (int)seed, 16);
	sink += (uint64_t)room[3];
	return call(seed) + (uint64_t)room[5];
}

static NOINLINE uint64_t aligned(uint64_t seed)
{
	uint64_t room[8] __attribute__((aligned(64)));

	memset(room, (int)seed, sizeof(room));
	sink += (uint64_t)(uintptr_t)room;
	return call(seed) + room[seed % 8];
}

static NOINLINE uint64_t with_many(uint64_t seed)
{
	uint64_t a = next(seed), b = next(a), c = next(b), d = next(c), e = next(d), f = next(e);
	uint64_t result = call(seed);

	return result ^ a ^ b ^ c ^ d ^ e ^ f;
}

static NOINLINE uint64_t with_arguments(
	uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	return call(a) + b + c + d + e + f + g + h;
}

/* By a pointer that the compiler does not see through: it must not make a function of its own of the call. */
static uint64_t (*volatile arguments_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t) = with_arguments;

static NOINLINE uint64_t passes_arguments(uint64_t seed)
{
	book_enter(book, (uintptr_t)with_arguments);
	uint64_t result = arguments_fn(seed, 2, 3, 4, 5, 6, 7, seed);

	book_leave(book);
	return result;
}

static uint64_t shared_seed;

static NOINLINE int compare(const void *left, const void *right)
{
	(void)left;
	(void)right;
	shared_seed = call(shared_seed);
	return 0;
}

/* Through the C library, which writes nothing into our book. */
static NOINLINE uint64_t through_qsort(uint64_t seed)
{
	uint64_t values[2] = {seed, seed};

	shared_seed = seed;
	book_enter(book, (uintptr_t)compare);
	qsort(values, 2, sizeof(values[0]), compare);
	book_leave(book);
	return shared_seed;
}

static NOINLINE uint64_t with_float(uint64_t seed)
{
	volatile double value = (double)seed;

	return call(seed) + (uint64_t)(value * 0);
}

static NOINLINE uint64_t with_large(uint64_t seed)
{
	volatile char room[5000];

	room[seed % 5000] = 1;
	return call(seed) + (uint64_t)room[seed % 5000];
}

typedef uint64_t function_fn(uint64_t seed);

static function_fn *const functions[] = {plain, with_room, with_alloca, aligned, with_many,
	passes_arguments, through_qsort, with_float, plain, with_many, with_room, with_large};

static NOINLINE uint64_t choose(uint64_t seed)
{
	seed = next(seed);
	function_fn *function = leaf;

	if (book->depth < BOOK_ENTRIES - 6 && (seed >> 40) % 24 != 0) {
		function = functions[(seed >> 32) % (sizeof(functions) / sizeof(functions[0]))];
	}
	book_enter(book, (uintptr_t)function);
	uint64_t result = function(seed);

	book_leave(book);
	return result;
}

int main(int argc, char **argv)
{
	struct book here = {.mark = BOOK_MARK,
		.base = (uintptr_t)main,
		.begin = (uintptr_t)__start_chain_code,
		.end = (uintptr_t)__stop_chain_code};
	struct timespec now, begin;
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	uint64_t seed = 1;

	here.mark_again = ~here.mark;
	book = &here;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 100; i++) {
			seed = call(seed);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
			 seconds);
	return seed == 0;
}
