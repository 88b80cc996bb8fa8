#include "unwind/difference.h"

const char *const difference_names[DIFFERENCES] = {
	"identical", "epilogue", "no_code", "no_table", "guessed", "stub", "unexplained"};

/* The row at a pc; false: there is none. */
static bool row_at(
	struct replay *replay, const struct replay_process *process, uint64_t pc, struct cfi_row *row)
{
	const struct unwind_range *range = unwind_space_find(&process->space, pc);

	return range != NULL && range->cfi != NULL &&
		   cfi_row_at(range->cfi, unwinder_reader(replay->unwinder), pc - range->bias, row, NULL) ==
			   CFI_FOUND;
}

static bool is_epilogue(
	struct replay *replay, const struct replay_process *process, const struct corpus_event *event)
{
	struct cfi_row row;
	const struct cfi_rule *fp = &row.rules[CFI_FP];

	return row_at(replay, process, event->registers[16], &row) &&
		   row.cfa.kind == CFI_RULE_REGISTER && row.cfa.number == 7 && fp->kind == CFI_RULE_AT &&
		   row.cfa.offset + fp->offset < 0;
}

static bool has_no_table(const struct replay_process *process, uint64_t pc)
{
	const struct unwind_range *range = unwind_space_find(&process->space, pc);

	return range != NULL && range->cfi != NULL &&
		   image_facts(cfi_image(range->cfi))->frame_header.bytes == 0;
}

static bool is_code(const struct replay_process *process, uint64_t pc)
{
	return unwind_space_find(&process->space, pc) != NULL;
}

/* Does the frame record that rbp points to say this return address? */
static bool is_recorded(const struct corpus_event *event, uint64_t address)
{
	const struct unwind_sample sample = replay_sample(event);
	uint64_t value;

	return unwind_memory_read(&sample.memory, sample.regs.fp + 8, &value) && value == address;
}

/* Is this the first or second word of the stack? */
static bool is_at_top(const struct corpus_event *event, uint64_t address)
{
	const struct unwind_sample sample = replay_sample(event);
	uint64_t first = 0, second = 0;

	unwind_memory_read(&sample.memory, sample.regs.sp, &first);
	unwind_memory_read(&sample.memory, sample.regs.sp + sizeof(first), &second);
	return first == address || second == address;
}

/* The first frame that differs is theirs alone, or ours alone. */
static enum difference explain(struct replay *replay, const struct replay_process *process,
	const struct corpus_event *event, const struct unwind_stack *ours, const struct peer_ops *peer,
	const struct peer_stack *theirs, size_t same)
{
	uint64_t last = same == 0 ? 0 : ours->addresses[same - 1] - (same > 1);
	struct cfi_row row;

	if (peer->needs_table && same > 0 && has_no_table(process, last)) {
		return DIFFERENCE_NO_TABLE;
	}
	if (theirs->count == same && is_epilogue(replay, process, event)) {
		return DIFFERENCE_EPILOGUE;
	}
	if (theirs->count > same && ours->count == same && ours->end == UNWIND_BAD &&
		!is_code(process, theirs->addresses[same])) {
		return DIFFERENCE_NO_CODE;
	}
	if (same > 0 && theirs->count > same && !row_at(replay, process, last, &row) &&
		(!is_code(process, theirs->addresses[same]) ||
			(same == 1 && is_recorded(event, ours->addresses[1])))) {
		return DIFFERENCE_GUESSED;
	}
	if (same == 1 && theirs->count == 1 && !row_at(replay, process, last, &row) &&
		is_at_top(event, ours->addresses[1])) {
		return DIFFERENCE_STUB;
	}
	return DIFFERENCE_UNEXPLAINED;
}

enum difference difference_of(struct replay *replay, const struct replay_process *process,
	const struct corpus_event *event, const struct unwind_stack *ours, const struct peer_ops *peer,
	const struct peer_stack *theirs)
{
	size_t same = 0;

	while (same < ours->count && same < theirs->count &&
		   ours->addresses[same] == theirs->addresses[same]) {
		same++;
	}
	return same == ours->count && same == theirs->count
			   ? DIFFERENCE_NONE
			   : explain(replay, process, event, ours, peer, theirs, same);
}
