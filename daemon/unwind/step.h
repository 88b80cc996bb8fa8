#ifndef UNWIND_STEP_H
#define UNWIND_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/registers.h"
#include "unwind/rule.h"
#include "unwind/unwind.h"

/*
 * One step of a walk: from a frame to its caller by one method. On UNWIND_STEPPED the frame's registers are the caller's; on
 * anything else they are as before, and with UNWIND_BROKEN end says why.
 */
struct step_walk {
	struct unwind_frame frame;
	const struct rule_rows *rows; /* borrowed */
	bool is_exact;                /* pc is the next instruction, not a return address */
	bool is_from_record;          /* the frame was found by the frame pointer */
	size_t fetched;               /* bytes of the copy that memory was asked for */
	enum unwind_end end;
	uint64_t unread; /* where a read failed */
};

/* A read at address failed. */
enum unwind_step step_unreadable(struct step_walk *walk, uint64_t address);
/* RULE_SP and RULE_FP: see below. RULE_ROW. */
enum unwind_step step_row(struct step_walk *walk, const struct cfi_row *row);
/* The kernel's layout of what a signal interrupted. */
enum unwind_step step_signal(struct step_walk *walk);
/* The frame record at the frame pointer: {frame pointer, return address} of the caller. Not for code that has call-frame information. */
enum unwind_step step_record(struct step_walk *walk);

/* The caller's registers, but for base; where it was called. */
static inline enum unwind_step step_to(
	struct step_walk *walk, uint64_t pc, uint64_t sp, uint64_t fp)
{
	struct unwind_regs *regs = &walk->frame.regs;

	regs->pc = regs->lr = pc;
	regs->sp = sp;
	regs->fp = fp;
	walk->frame.others = NULL;
	walk->is_exact = walk->is_from_record = false;
	return pc == 0 ? UNWIND_FINISHED : UNWIND_STEPPED;
}

/* The slot of a saved register lies below sp when an epilogue has taken the value back already: it is what it is. */
static inline bool step_is_restored(const struct step_walk *walk, uint64_t slot)
{
	return slot < walk->frame.regs.sp;
}

/* A base register that cannot be read is not known: hardly any code needs it. */
static inline void step_restore_base(struct step_walk *walk, uint64_t slot)
{
	if (!step_is_restored(walk, slot)) {
		walk->frame.is_base_known =
			unwind_memory_read(walk->frame.memory, slot, &walk->frame.regs.base);
	}
}

/* The hot path: nearly every step of nearly every walk. */
static inline enum unwind_step step_plain(struct step_walk *walk, const struct rule *rule)
{
	const struct unwind_regs *regs = &walk->frame.regs;
	const struct unwind_memory *memory = walk->frame.memory;
	uint64_t cfa =
		(rule->kind == RULE_SP ? regs->sp : regs->fp) + (uint64_t)(int64_t)rule->cfa_offset;
	uint64_t slot = cfa + (uint64_t)(int64_t)rule->ra_offset, pc = regs->lr, fp = regs->fp;

	if (rule->kind == RULE_FP && !walk->frame.is_fp_known) {
		return UNWIND_UNKNOWN;
	}
	if (rule->flags & RULE_RA_IN_LR) {
		/* Who has called another function has lr no more. */
		if (!walk->is_exact || !walk->frame.is_lr_known) {
			walk->end = UNWIND_BAD;
			return UNWIND_BROKEN;
		}
	} else if (!unwind_memory_read(memory, slot, &pc)) {
		return step_unreadable(walk, slot);
	}
	slot = cfa + (uint64_t)(int64_t)rule->fp_offset;
	if ((rule->flags & RULE_FP_AT) && !step_is_restored(walk, slot)) {
		/* Not known is no end: who needs it will tell. */
		walk->frame.is_fp_known = unwind_memory_read(memory, slot, &fp);
	}
	if (rule->flags & RULE_BASE_AT) {
		step_restore_base(walk, cfa + (uint64_t)((int64_t)rule->base_slot * RULE_SLOT_BYTES));
	}
	if (rule->flags & RULE_SIGNED) {
		pc &= walk->frame.machine->code_mask;
	}
	return step_to(walk, pc, cfa, fp);
}

#endif
