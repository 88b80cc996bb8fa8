#ifndef CAPTURE_STITCHES_H
#define CAPTURE_STITCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which callers a frame has: of complete stacks it is remembered what stands outside of each return address. Of a stack that was cut, because it
 * is longer than what is copied of it, the missing part is known when its outermost frame was seen before with one and the same
 * callers only. One thread. Bounded: when it is full it learns nothing more, but still unlearns.
 */
struct stitches;

#define STITCHES_FRAMES  131072 /* of all remembered stacks */
#define STITCHES_ENTRIES 32768  /* return addresses */

/* NULL: memory is out. */
struct stitches *stitches_create(void);
void stitches_destroy(struct stitches *stitches);

struct stitches_stack {
	const uint64_t *frames;  /* innermost first */
	const uint8_t *is_exact; /* which are no return addresses */
	const uint64_t *sps;     /* where the stack pointer was in each */
	size_t count;
};

/* A complete stack. */
void stitches_learn(struct stitches *stitches, const struct stitches_stack *stack);

/* The callers of a frame; borrowed until the next call of the others. False: not known, or not one and the same. */
bool stitches_find(const struct stitches *stitches, uint64_t frame, struct stitches_stack *callers);

/* Addresses mean something else from here on. */
void stitches_forget(struct stitches *stitches);

#endif
