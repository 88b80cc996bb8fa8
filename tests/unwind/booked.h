#ifndef TESTS_UNWIND_BOOKED_H
#define TESTS_UNWIND_BOOKED_H

#include <stdint.h>

#include "base/vec.h"
#include "unwind/book.h"
#include "unwind/corpus.h"
#include "unwind/unwind.h"

/* A walk against the book that the program keeps of its own call chain (book.h). */
enum booked_result {
	BOOKED_NONE,  /* the copy has no book: a sample before main */
	BOOKED_EXACT, /* the chain is the book's, and reaches the root */
	BOOKED_BETWEEN, /* the book has one entry more: it is written before the call and taken out after it */
	BOOKED_WRONG,
};

struct booked_function {
	uint64_t start, end;
};

struct booked { /* the program's functions, as nm tells them */
	VEC(struct booked_function) functions;
	uint64_t main;
};

void booked_init(struct booked *booked, const char *program);
void booked_finish(struct booked *booked);
enum booked_result booked_check(const struct booked *booked, const struct corpus_event *event,
	const struct unwind_stack *stack, struct book *book);

#endif
