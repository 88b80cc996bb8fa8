#include "capture/stack_record.h"

#include <string.h>

#include "profile/journal.h"

/* The innermost user frame is none, to a reader of the journal, whatever is said of it. */
static void set_kinds(struct stack_record *record, const struct stacks_key *key,
	const struct unwinding_stack *unwound)
{
	uint8_t *user = record->kinds + key->kernel_count;
	memset(record->kinds, JOURNAL_FRAME_KERNEL, key->kernel_count);
	memset(user, JOURNAL_FRAME_NATIVE, key->user_count);
	for (size_t i = 1; unwound != NULL && i < key->user_count; i++) {
		user[i] = unwound->is_exact[i] ? JOURNAL_FRAME_EXACT : JOURNAL_FRAME_NATIVE;
	}
}

/* Makes room for it behind so many frames. */
static void put_mark(
	struct stack_record *record, const uint64_t *frames, size_t count, size_t behind, uint32_t mark)
{
	memmove(record->kinds + behind + 1, record->kinds + behind, count - behind);
	record->kinds[behind] = JOURNAL_FRAME_MARKER;
	memcpy(record->values, frames, behind * sizeof(*frames));
	record->values[behind] = mark;
	memcpy(record->values + behind + 1, frames + behind, (count - behind) * sizeof(*frames));
}

void stack_record_append(struct stack_record *record, uint32_t id, const struct stacks_key *key,
	const uint64_t *frames, const struct unwinding_stack *unwound, uint32_t mark)
{
	size_t count = key->kernel_count + key->user_count;
	bool is_stitched = unwound != NULL && unwound->stitched_from < unwound->count;
	set_kinds(record, key, unwound);
	if (is_stitched) {
		put_mark(record, frames, count, key->kernel_count + unwound->stitched_from, mark);
	}
	const struct journal_record written = {
		.type = JOURNAL_STACK,
		.stack =
			{
				.id = id,
				.pid = (uint64_t)key->pid,
				.end = key->end,
				.frame_count = count + is_stitched,
				.values = is_stitched ? record->values : frames,
				.kinds = record->kinds,
			},
	};
	journal_writer_append(record->writer, &written);
}
