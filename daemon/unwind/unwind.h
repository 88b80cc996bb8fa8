#ifndef UNWIND_UNWIND_H
#define UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/cfi.h"
#include "unwind/machine.h"
#include "unwind/registers.h"
#include "unwind/space.h"

/*
 * The walk from where a thread is to its outermost function, over a copied piece of its stack.
 *
 * For each program counter a method is asked that is right for its code: call-frame information (cfi.h) where an image has it, one step by the
 * frame pointer where nothing has (a JIT's code, hand-written assembly), which is believed only when it leads to code. What cannot be
 * known ends the walk with a reason; no frame is guessed.
 *
 * An unwinder is one thread's: it keeps the rules of the pcs it saw, and pages of images. For pcs it knows it allocates, formats and locks
 * nothing and makes no system call. What is known of an image (struct cfi) is shared by all threads.
 */
struct unwinder;

/* What one method says about one frame. */
enum unwind_step {
	UNWIND_STEPPED,  /* regs now describe the caller */
	UNWIND_FINISHED, /* no caller: the walk is complete */
	UNWIND_UNKNOWN,  /* not mine: try the next method */
	UNWIND_BROKEN, /* memory or tables contradict themselves, or the copy ends: why is in the walk */
};

/* Why a stack ends where it does; enum journal_stack_end has the same. */
enum unwind_end {
	UNWIND_ROOT, /* the outermost frame: its return address is undefined or 0. JOURNAL_STACK_COMPLETE */
	UNWIND_CUT,     /* the copied part of the stack ends. JOURNAL_STACK_COPY */
	UNWIND_NO_RULE, /* nothing is known about the last frame's code. JOURNAL_STACK_NO_RULE */
	UNWIND_BAD,     /* memory or tables contradict themselves. JOURNAL_STACK_BROKEN */
	UNWIND_DEPTH,   /* the caller's array is full. JOURNAL_STACK_DEPTH */
	UNWIND_LOOP,    /* a step that moves neither pc nor sp. JOURNAL_STACK_LOOP */
};

/* What a walk begins with. */
struct unwind_sample {
	struct unwind_regs regs;
	/* All registers by their DWARF numbers, and a bit for each that is known; NULL: regs are all. They help in a function's
	 * first instructions. Borrowed. */
	const uint64_t *others;
	uint64_t others_known;
	struct unwind_memory memory; /* from sp upwards; borrowed */
};

enum unwind_frame_kind {
	UNWIND_RETURN, /* a return address: the call is before it */
	UNWIND_EXACT, /* the next instruction: of the innermost frame, and of one that a signal interrupted */
};

struct unwind_stack {
	uint64_t *addresses; /* the caller's, capacity entries; innermost first */
	uint8_t *kinds;      /* enum unwind_frame_kind; the caller's */
	size_t capacity, count;
	uint64_t *
		sps; /* the caller's, capacity entries: where the stack pointer was in each frame; NULL: nobody asks */
	/* How many steps went by the frame pointer, out of code of which nothing is known: right for a JIT's; and how many of these out of files that have
	 * call-frame information for other code: right for most assembly, and invented where such code has none (musl's C library). */
	size_t records, guesses;
	enum unwind_end end;
	uint64_t
		unread; /* UNWIND_CUT: the address that was to be read; nearly always that of the return address */
};

/* What it cost so far. */
struct unwind_counters {
	uint64_t stacks, frames;
	uint64_t rows;   /* pcs that were met for the first time, in a row that was known */
	uint64_t misses; /* pcs whose rule had to be made */
};

/* NULL: memory is out. Takes 0.6 MiB at once and up to 2.3 MiB more. */
struct unwinder *unwinder_create(const struct unwind_machine *machine);
void unwinder_destroy(struct unwinder *unwinder);

/* For unwind_space_init: every space that this unwinder walks counts its states here. Valid as long as the unwinder. */
uint64_t *unwinder_states(struct unwinder *unwinder);
/* For cfi_create on the unwinder's thread. Valid as long as the unwinder. */
struct cfi_reader *unwinder_reader(struct unwinder *unwinder);
const struct unwind_counters *unwinder_counters(const struct unwinder *unwinder);

/* Whether code of which nothing is known is left by its frame pointer (the default), or ends the stack (UNWIND_NO_RULE). Before the first walk. */
void unwinder_use_frame_pointers(struct unwinder *unwinder, bool use);

/* Walks. Always gives the innermost frame, when there is room; stack->count and stack->end are set. */
void unwind_walk(struct unwinder *unwinder, const struct unwind_space *space,
	const struct unwind_sample *sample, struct unwind_stack *stack);

#endif
