#include "unwind/unwind.h"

#include <stdlib.h>

#include "unwind/rule.h"
#include "unwind/rule_blocks.h"
#include "unwind/rule_cache.h"
#include "unwind/step.h"
#include "unwind/stub.h"

#define FETCH_BYTES      2048 /* pieces of a copy; most walks need one or two */
#define CACHE_LINE_BYTES 64
#define CALLS                                                                                      \
	256 /* places that frame pointers led to out of code without tables: a few in most programs */

/* Whether a call stands before an address. */
struct known_call {
	uint64_t pc, state;
	bool is_call;
};

struct unwinder {
	const struct unwind_machine *machine;
	struct rule_cache cache;
	struct rule_blocks blocks;
	struct rule_rows rows;
	struct cfi_reader reader;
	struct known_call calls[CALLS]; /* by the lowest bits of pc */
	uint64_t states;
	bool no_frame_pointers;
	struct unwind_counters counters;
};

struct unwinder *unwinder_create(const struct unwind_machine *machine)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder == NULL) {
		return NULL;
	}
	unwinder->machine = machine;
	if (!rule_cache_init(&unwinder->cache) || !rule_blocks_init(&unwinder->blocks) ||
		!cfi_reader_init(&unwinder->reader)) {
		unwinder_destroy(unwinder);
		return NULL;
	}
	return unwinder;
}

void unwinder_destroy(struct unwinder *unwinder)
{
	if (unwinder == NULL) {
		return;
	}
	rule_cache_finish(&unwinder->cache);
	rule_blocks_finish(&unwinder->blocks);
	rule_rows_finish(&unwinder->rows);
	cfi_reader_finish(&unwinder->reader);
	free(unwinder);
}

uint64_t *unwinder_states(struct unwinder *unwinder)
{
	return &unwinder->states;
}

struct cfi_reader *unwinder_reader(struct unwinder *unwinder)
{
	return &unwinder->reader;
}

const struct unwind_counters *unwinder_counters(const struct unwinder *unwinder)
{
	return &unwinder->counters;
}

void unwinder_use_frame_pointers(struct unwinder *unwinder, bool use)
{
	unwinder->no_frame_pointers = !use;
}

static struct rule rule_of_row(struct unwinder *unwinder, const struct cfi_row *row)
{
	struct rule rule = {.kind = RULE_UNKNOWN};

	if (rule_make(unwinder->machine, row, &unwinder->rows, &rule)) {
		return rule;
	}
	/* No room: begin anew, so that a program that maps new images for ever goes on. */
	rule_rows_clear(&unwinder->rows);
	rule_cache_clear(&unwinder->cache);
	rule_blocks_clear(&unwinder->blocks);
	rule_make(unwinder->machine, row, &unwinder->rows, &rule);
	return rule;
}

/* What is known of a row is kept for all of it that lies in the range. */
static void keep_row(struct unwinder *unwinder, const struct unwind_range *range, uint64_t state,
	uint64_t lookup, const struct cfi_range *where, const struct rule *rule)
{
	uint64_t begin = where->begin + range->bias, end = where->end + range->bias;

	begin = begin < range->start ? range->start : begin;
	end = end > range->end ? range->end : end;
	if (begin <= lookup && lookup < end) {
		rule_blocks_put(&unwinder->blocks, lookup, begin, end, state, rule);
	}
}

/*
 * A return address at the very beginning of a function, with neither a call nor other code before it, was put there by whoever made the stack
 * (makecontext): there is no caller.
 */
static bool is_planted(struct unwinder *unwinder, const struct unwind_range *range, uint64_t pc)
{
	const struct image *image = cfi_image(range->cfi);
	struct cfi_row row = {0};
	struct cfi_range where = {0};
	uint64_t at = pc - range->bias;

	return cfi_row_at(range->cfi, &unwinder->reader, at, &row, &where) == CFI_FOUND &&
		   where.begin == at &&
		   stub_is_call(unwinder->machine, unwinder->reader.cache, image, at) == STUB_OTHER;
}

static struct rule rule_in(struct unwinder *unwinder, const struct unwind_range *range,
	uint64_t state, uint64_t lookup, uint64_t pc)
{
	struct rule rule = {.kind = unwinder->no_frame_pointers ? RULE_UNKNOWN : RULE_CODE};
	struct cfi_row row = {0};
	struct cfi_range where = {0};

	if (range->cfi == NULL) {
		return rule;
	}
	if (cfi_machine(range->cfi) != unwinder->machine) {
		return (struct rule){.kind = RULE_UNKNOWN};
	}
	switch (cfi_row_at(range->cfi, &unwinder->reader, lookup - range->bias, &row, &where)) {
	case CFI_FOUND:
		rule = rule_of_row(unwinder, &row);
		keep_row(unwinder, range, state, lookup, &where, &rule);
		return rule;
	case CFI_NONE:
		rule.flags = RULE_IN_FILE;
		if (!stub_find(unwinder->machine, unwinder->reader.cache, cfi_image(range->cfi),
				pc - range->bias, lookup == pc, &rule) &&
			lookup != pc && is_planted(unwinder, range, pc)) {
			rule.kind = RULE_END;
		}
		return rule;
	case CFI_UNKNOWN:
		return (struct rule){.kind = RULE_UNKNOWN};
	default:
		return (struct rule){.kind = RULE_BROKEN};
	}
}

/* The cache's key: the code at a place says one thing of who is there, and may say another of who returns to just behind it (stub.h). */
static inline uint64_t key_of(uint64_t lookup, bool is_exact)
{
	return lookup ^ (uint64_t)is_exact << 63;
}

/* The first time at a pc. NULL: no code is known to be there. */
static const struct rule *make_rule(
	struct unwinder *unwinder, const struct unwind_space *space, uint64_t lookup, uint64_t pc)
{
	const struct rule *known = rule_blocks_find(&unwinder->blocks, lookup, space->state);

	if (known != NULL) {
		unwinder->counters.rows++;
		/* An innermost pc is hardly met again: it shall not take the place of a return address. */
		return lookup == pc
				   ? known
				   : rule_cache_put(&unwinder->cache, key_of(lookup, false), space->state, known);
	}
	const struct unwind_range *range = unwind_space_find(space, lookup);

	if (range == NULL) {
		return NULL;
	}
	unwinder->counters.misses++;
	const struct rule rule = rule_in(unwinder, range, space->state, lookup, pc);

	return rule_cache_put(&unwinder->cache, key_of(lookup, lookup == pc), space->state, &rule);
}

/*
 * Code without tables beside code with tables has frame pointers or has not. What the register points to is a frame record only when what would be
 * the return address stands behind a call, or is a signal's trampoline. True also where the code cannot be read.
 */
static bool is_called(struct unwinder *unwinder, const struct unwind_space *space, uint64_t pc)
{
	struct known_call *known = &unwinder->calls[pc % CALLS];
	const struct unwind_range *range;

	if (known->pc == pc && known->state == space->state) {
		return known->is_call;
	}
	range = unwind_space_find(space, pc - 1);
	*known = (struct known_call){pc, space->state, true};
	if (range != NULL && range->cfi != NULL) {
		known->is_call = stub_is_call(unwinder->machine, unwinder->reader.cache,
							 cfi_image(range->cfi), pc - range->bias) != STUB_OTHER;
	}
	return known->is_call;
}

/* Asks the methods in turn. */
static enum unwind_step step(struct step_walk *walk, const struct rule *rule)
{
	switch (rule->kind) {
	case RULE_SP:
	case RULE_FP:
		return step_plain(walk, rule);
	case RULE_ROW:
		return step_row(walk, &walk->rows->rows.items[rule->cfa_offset].row);
	case RULE_SIGNAL:
		return step_signal(walk);
	case RULE_CODE:
		return step_record(walk);
	case RULE_END:
		return UNWIND_FINISHED;
	case RULE_BROKEN:
		walk->end = UNWIND_BAD;
		return UNWIND_BROKEN;
	default:
		return UNWIND_UNKNOWN;
	}
}

/*
 * Each frame's words are known by the frame before only: without this a walk waits for memory once a frame. Asks for the next piece of the copy
 * when the walk comes near its end.
 */
static inline void fetch(struct step_walk *walk)
{
	const struct unwind_memory *memory = walk->frame.memory;
	uint64_t at = walk->frame.regs.sp - memory->address;

	if (at + FETCH_BYTES <= walk->fetched || walk->fetched >= memory->len) {
		return;
	}
	size_t end =
		memory->len - walk->fetched < FETCH_BYTES ? memory->len : walk->fetched + FETCH_BYTES;

	for (; walk->fetched < end; walk->fetched += CACHE_LINE_BYTES) {
		__builtin_prefetch(memory->bytes + walk->fetched);
	}
}

/* One frame goes into the stack, and the walk to its caller. False: it was the last; walk->end says why. */
static inline bool go_on(struct unwinder *unwinder, const struct unwind_space *space,
	struct step_walk *walk, struct unwind_stack *stack)
{
	uint64_t pc = walk->frame.regs.pc, sp = walk->frame.regs.sp, lookup = pc - !walk->is_exact;

	fetch(walk);
	const struct rule *rule =
		rule_cache_find(&unwinder->cache, key_of(lookup, walk->is_exact), space->state);

	if (rule == NULL) {
		rule = make_rule(unwinder, space, lookup, pc);
	}
	if (rule == NULL && stack->count > 0) {
		/* A step that leads to no code. By frame pointer it only means that there was none. */
		walk->end = walk->is_from_record ? UNWIND_NO_RULE : UNWIND_BAD;
		return false;
	}
	stack->kinds[stack->count] = walk->is_exact ? UNWIND_EXACT : UNWIND_RETURN;
	if (stack->sps != NULL) {
		stack->sps[stack->count] = sp;
	}
	stack->addresses[stack->count++] = pc;
	walk->end = UNWIND_NO_RULE;
	enum unwind_step result = rule == NULL ? UNWIND_UNKNOWN : step(walk, rule);

	if (result == UNWIND_FINISHED) {
		walk->end = UNWIND_ROOT;
	}
	if (walk->is_from_record && result == UNWIND_STEPPED) {
		bool is_guess = (rule->flags & RULE_IN_FILE) != 0;

		if (is_guess && !is_called(unwinder, space, walk->frame.regs.pc)) {
			return false;
		}
		stack->records++;
		stack->guesses += is_guess;
	}
	if (result == UNWIND_STEPPED && walk->frame.regs.pc == pc && walk->frame.regs.sp == sp) {
		walk->end = UNWIND_LOOP;
		return false;
	}
	return result == UNWIND_STEPPED;
}

void unwind_walk(struct unwinder *unwinder, const struct unwind_space *space,
	const struct unwind_sample *sample, struct unwind_stack *stack)
{
	struct step_walk walk = {
		.frame = {.machine = unwinder->machine,
			.regs = sample->regs,
			.is_fp_known = true,
			.is_lr_known = true,
			.is_base_known = true,
			.others = sample->others,
			.others_known = sample->others_known,
			.memory = &sample->memory},
		.rows = &unwinder->rows,
		.is_exact = true,
		.end = UNWIND_DEPTH,
	};

	stack->count = stack->records = stack->guesses = 0;
	while (stack->count < stack->capacity && go_on(unwinder, space, &walk, stack)) {
		if (stack->count == stack->capacity) {
			walk.end = UNWIND_DEPTH;
		}
	}
	stack->end = walk.end;
	stack->unread = walk.unread;
	unwinder->counters.stacks++;
	unwinder->counters.frames += stack->count;
}
