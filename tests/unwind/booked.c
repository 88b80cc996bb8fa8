#include "unwind/booked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN 4096

void booked_init(struct booked *booked, const char *program)
{
	char command[4200], line[512], name[256], type;
	unsigned long long start, size;

	snprintf(command, sizeof(command), "nm -S '%s'", program);
	FILE *nm = popen(command, "r");

	while (nm != NULL && fgets(line, sizeof(line), nm) != NULL) {
		if (sscanf(line, "%llx %llx %c %255s", &start, &size, &type, name) == 4 &&
			strchr("tT", type) != NULL) {
			VEC_PUSH(&booked->functions, ((struct booked_function){start, start + size}));
			booked->main = strcmp(name, "main") == 0 ? start : booked->main;
		}
	}
	if (nm != NULL) {
		pclose(nm);
	}
}

void booked_finish(struct booked *booked)
{
	VEC_FINISH(&booked->functions);
}

static bool find_book(const struct corpus_event *event, struct book *book)
{
	for (size_t at = 0; at + sizeof(*book) <= event->stack_bytes; at += 8) {
		memcpy(book, event->stack + at, sizeof(*book));
		if (book->mark == BOOK_MARK && book->mark_again == ~book->mark) {
			return book->depth <= BOOK_ENTRIES;
		}
	}
	return false;
}

/* The function that holds an address of the image; 0: none of the program's. */
static uint64_t function_of(const struct booked *booked, uint64_t address)
{
	for (size_t i = 0; i < booked->functions.len; i++) {
		const struct booked_function *function = &booked->functions.items[i];

		if (address >= function->start && address < function->end) {
			return function->start;
		}
	}
	return 0;
}

/* The functions below main that are booked, outermost first. False: main is not in the stack. */
static bool chain_of(const struct booked *booked, const struct unwind_stack *stack,
	const struct book *book, uint64_t *chain, size_t *count)
{
	uint64_t bias = book->base - booked->main;
	bool has_main = false;

	*count = 0;
	for (size_t i = stack->count; i-- > 0;) {
		bool is_call = stack->kinds[i] == UNWIND_RETURN;
		uint64_t function = function_of(booked, stack->addresses[i] - bias - is_call);

		if (has_main && function + bias >= book->begin && function + bias < book->end) {
			chain[(*count)++] = function + bias;
		}
		has_main |= function == booked->main;
	}
	return has_main;
}

enum booked_result booked_check(const struct booked *booked, const struct corpus_event *event,
	const struct unwind_stack *stack, struct book *book)
{
	static uint64_t chain[CHAIN];
	size_t count, depth;

	if (!find_book(event, book)) {
		return BOOKED_NONE;
	}
	depth = (size_t)book->depth;
	if (!chain_of(booked, stack, book, chain, &count) || count > depth ||
		stack->end != UNWIND_ROOT || depth - count > 1 ||
		memcmp((const void *)(uintptr_t)book->entries, chain, count * sizeof(chain[0])) != 0) {
		return BOOKED_WRONG;
	}
	return count == depth ? BOOKED_EXACT : BOOKED_BETWEEN;
}
