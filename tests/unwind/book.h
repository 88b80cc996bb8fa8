#ifndef TESTS_UNWIND_BOOK_H
#define TESTS_UNWIND_BOOK_H

#include <stdint.h>

/* A call chain as the program itself knows it: outermost first, as addresses of functions. */
#define BOOK_MARK    0x6b6f6f622d6c6c61u /* "all-book" */
#define BOOK_ENTRIES 48

struct book {
	volatile uint64_t mark, mark_again; /* its complement */
	uint64_t base;                      /* main */
	uint64_t begin, end;                /* where the functions are that are booked */
	volatile uint64_t depth;
	volatile uint64_t entries[BOOK_ENTRIES];
};

/* The entry is there before the count says so. */
static inline void book_enter(struct book *book, uint64_t function)
{
	book->entries[book->depth] = function;
	book->depth++;
}

static inline void book_leave(struct book *book)
{
	book->depth--;
}

#endif
