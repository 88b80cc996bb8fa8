#include "unwind/step.h"

#include "unwind/cfi_expression.h"

#define USER_ADDRESS_BITS 56 /* with five levels of page tables */
#define RECORD_REACH                                                                               \
	(8 << 20) /* how far above sp a frame pointer may point to count as cut, not as something else */

enum unwind_step step_unreadable(struct step_walk *walk, uint64_t address)
{
	const struct unwind_memory *memory = walk->frame.memory;
	bool is_on_copy = walk->frame.regs.sp - memory->address <= memory->len;
	bool is_below = address < memory->address;

	/* Below the copy of the stack that the frame is on nothing is saved; from another stack (a signal's) anything may be missing. */
	walk->unread = address;
	walk->end =
		address >> USER_ADDRESS_BITS != 0 || (is_below && is_on_copy) ? UNWIND_BAD : UNWIND_CUT;
	return UNWIND_BROKEN;
}

static enum unwind_step broken(struct step_walk *walk)
{
	walk->end = UNWIND_BAD;
	return UNWIND_BROKEN;
}

static enum unwind_step read_word(struct step_walk *walk, uint64_t address, uint64_t *value)
{
	return unwind_memory_read(walk->frame.memory, address, value) ? UNWIND_STEPPED
																  : step_unreadable(walk, address);
}

static enum unwind_step evaluate(
	struct step_walk *walk, const struct cfi_rule *rule, const uint64_t *cfa, uint64_t *value)
{
	const struct cfi_expression expression = {rule->expression, rule->expression_len};
	uint64_t address = 0;

	switch (cfi_expression_run(&expression, &walk->frame, cfa, value, &address)) {
	case CFI_VALUE:
		return UNWIND_STEPPED;
	case CFI_VALUE_UNREADABLE:
		return step_unreadable(walk, address);
	case CFI_VALUE_UNKNOWN:
		return UNWIND_UNKNOWN;
	default:
		return broken(walk);
	}
}

static enum unwind_step find_cfa(struct step_walk *walk, const struct cfi_rule *rule, uint64_t *cfa)
{
	if (rule->kind == CFI_RULE_EXPRESSION) {
		return evaluate(walk, rule, NULL, cfa);
	}
	if (rule->kind != CFI_RULE_REGISTER) {
		return broken(walk);
	}
	if (!unwind_frame_register(&walk->frame, rule->number, cfa)) {
		return UNWIND_UNKNOWN;
	}
	*cfa += (uint64_t)rule->offset;
	return UNWIND_STEPPED;
}

/* One register of the caller. *value is what it has now, for rules that leave it; *is_known whether it is known then. */
static enum unwind_step find_register(struct step_walk *walk, const struct cfi_rule *rule,
	uint64_t cfa, uint64_t *value, bool *is_known)
{
	uint64_t address = cfa + (uint64_t)rule->offset;
	enum unwind_step result = UNWIND_STEPPED;

	switch (rule->kind) {
	case CFI_RULE_UNSPECIFIED:
	case CFI_RULE_SAME:
		return UNWIND_STEPPED;
	case CFI_RULE_UNDEFINED:
		*is_known = false;
		return UNWIND_STEPPED;
	case CFI_RULE_VALUE:
		*value = address;
		break;
	case CFI_RULE_REGISTER:
		*is_known = unwind_frame_register(&walk->frame, rule->number, value);
		return UNWIND_STEPPED;
	case CFI_RULE_EXPRESSION:
		result = evaluate(walk, rule, &cfa, value);
		break;
	case CFI_RULE_AT_EXPRESSION:
		result = evaluate(walk, rule, &cfa, &address);
		if (result != UNWIND_STEPPED) {
			return result;
		}
		result = read_word(walk, address, value);
		break;
	default:
		result = read_word(walk, address, value);
	}
	*is_known = true;
	return result;
}

/*
 * Is the value of a saved register back in the register already, although the row still says where it was saved? In epilogues rows lag behind, in two
 * ways: the slot lies below sp ("pop %rbp; ret": at CFA - 16), or it is told by an expression over a register that was itself
 * restored (gcc's frames that realign the stack: rbp at *(rbp + 0), "pop %rbp; lea -8(%r10),%rsp; ret"), and lies outside of the frame.
 */
static bool is_back(const struct step_walk *walk, const struct cfi_row *row,
	enum cfi_rule_kind kind, uint64_t slot, uint64_t cfa)
{
	bool is_own_frame = row->cfa.kind == CFI_RULE_REGISTER &&
						row->cfa.number != walk->frame.machine->fp && !row->is_signal;

	return (kind == CFI_RULE_AT && !row->is_signal && step_is_restored(walk, slot)) ||
		   (kind == CFI_RULE_AT_EXPRESSION && is_own_frame &&
			   (step_is_restored(walk, slot) || slot >= cfa));
}

/* fp and base. What cannot be read is not known, and does not end the walk: hardly any frame needs them, and those that do will tell. */
static void find_saved(struct step_walk *walk, const struct cfi_row *row, enum cfi_column column,
	uint64_t cfa, uint64_t *value, bool *is_known)
{
	const struct cfi_rule *rule = &row->rules[column];
	uint64_t slot = cfa + (uint64_t)rule->offset;

	if (rule->kind == CFI_RULE_AT_EXPRESSION &&
		evaluate(walk, rule, &cfa, &slot) != UNWIND_STEPPED) {
		*is_known = false;
	} else if (rule->kind == CFI_RULE_AT || rule->kind == CFI_RULE_AT_EXPRESSION) {
		if (!is_back(walk, row, rule->kind, slot, cfa)) {
			*is_known = unwind_memory_read(walk->frame.memory, slot, value);
		}
	} else if (find_register(walk, rule, cfa, value, is_known) != UNWIND_STEPPED) {
		*is_known = false;
	}
}

/* The return address. Unless the row says otherwise it is in lr, for machines that have one and frames that still have it. */
static enum unwind_step find_ra(
	struct step_walk *walk, const struct cfi_row *row, uint64_t cfa, uint64_t *ra)
{
	const struct cfi_rule *rule = &row->rules[CFI_RA];
	bool is_lr = row->is_ra_in_lr && walk->frame.is_lr_known && walk->is_exact;

	*ra = walk->frame.regs.lr;
	enum unwind_step result = find_register(walk, rule, cfa, ra, &is_lr);

	if (result == UNWIND_STEPPED && !is_lr) {
		return UNWIND_UNKNOWN;
	}
	*ra &= row->is_signed ? walk->frame.machine->code_mask : UINT64_MAX;
	return result;
}

enum unwind_step step_row(struct step_walk *walk, const struct cfi_row *row)
{
	uint64_t cfa = 0, pc = 0, fp = walk->frame.regs.fp, base = walk->frame.regs.base, sp;
	bool is_fp_known = walk->frame.is_fp_known, is_base_known = walk->frame.is_base_known;
	bool is_sp_known = true;
	enum unwind_step result = find_cfa(walk, &row->cfa, &cfa);

	if (result == UNWIND_STEPPED) {
		result = find_ra(walk, row, cfa, &pc);
	}
	if (result != UNWIND_STEPPED) {
		return result;
	}
	sp = row->rules[CFI_SP].kind == CFI_RULE_SAME ? walk->frame.regs.sp : cfa;
	result = find_register(walk, &row->rules[CFI_SP], cfa, &sp, &is_sp_known);
	if (result != UNWIND_STEPPED || !is_sp_known) {
		return result == UNWIND_STEPPED ? UNWIND_UNKNOWN : result;
	}
	find_saved(walk, row, CFI_FP, cfa, &fp, &is_fp_known);
	find_saved(walk, row, CFI_BASE, cfa, &base, &is_base_known);
	result = step_to(walk, pc, sp, fp);
	walk->frame.regs.base = base;
	walk->frame.is_base_known = is_base_known;
	walk->frame.is_fp_known = is_fp_known;
	walk->frame.is_lr_known = !row->is_signal;
	walk->is_exact = row->is_signal;
	return result;
}

/* Reads so many words, each at an offset from base, until one cannot be read. */
struct saved_word {
	uint64_t *to;
	uint16_t offset;
};

static enum unwind_step read_words(
	struct step_walk *walk, uint64_t base, const struct saved_word *words, size_t count)
{
	enum unwind_step result = UNWIND_STEPPED;

	for (size_t i = 0; i < count && result == UNWIND_STEPPED; i++) {
		result = read_word(walk, base + words[i].offset, words[i].to);
	}
	return result;
}

enum unwind_step step_signal(struct step_walk *walk)
{
	const struct unwind_machine *machine = walk->frame.machine;
	bool has_lr = machine->lr != UNWIND_NO_REGISTER;
	struct unwind_regs regs = {0};
	const struct saved_word words[] = {
		{&regs.pc, machine->signal_pc}, {&regs.sp, machine->signal_sp},
		{&regs.fp, machine->signal_fp}, {&regs.base, machine->signal_base},
		{&regs.lr, machine->signal_lr}, /* the last, for machines that have none */
	};
	enum unwind_step result = read_words(
		walk, walk->frame.regs.sp, words, sizeof(words) / sizeof(words[0]) - (has_lr ? 0 : 1));

	if (result != UNWIND_STEPPED) {
		return result;
	}
	result = step_to(walk, regs.pc, regs.sp, regs.fp);
	walk->frame.regs = regs;
	walk->frame.is_fp_known = walk->frame.is_base_known = true;
	walk->frame.is_lr_known = has_lr;
	walk->is_exact = true;
	return result;
}

/* A frame pointer that leads out of the copy is a cut only when it can be one. */
static enum unwind_step record_missing(struct step_walk *walk)
{
	const struct unwind_regs *regs = &walk->frame.regs;

	if (regs->fp - regs->sp > RECORD_REACH) {
		return UNWIND_UNKNOWN;
	}
	return step_unreadable(walk, regs->fp);
}

enum unwind_step step_record(struct step_walk *walk)
{
	const struct unwind_machine *machine = walk->frame.machine;
	uint64_t record = walk->frame.regs.fp, fp, pc;

	/*
	 * The outermost frame's is 0 (AMD64 psABI, 3.4.1; AAPCS64, 6.4.6): where a frame pointer has led. Elsewhere it may be any number, and is 0 in all
	 * of a program that does not use it.
	 */
	if (record == 0 && walk->frame.is_fp_known && walk->is_from_record) {
		return UNWIND_FINISHED;
	}
	if (!walk->frame.is_fp_known || record < walk->frame.regs.sp || record % sizeof(pc) != 0) {
		return UNWIND_UNKNOWN;
	}
	if (!unwind_memory_read(walk->frame.memory, record + machine->record_fp, &fp) ||
		!unwind_memory_read(walk->frame.memory, record + machine->record_ra, &pc)) {
		return record_missing(walk);
	}
	enum unwind_step result = step_to(walk, pc & machine->code_mask, record + 2 * sizeof(pc), fp);

	/* What it saved, and where, nobody says. */
	walk->frame.is_base_known = false;
	walk->is_from_record = true;
	return result;
}
