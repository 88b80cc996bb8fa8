#ifndef CAPTURE_STACK_RECORD_H
#define CAPTURE_STACK_RECORD_H

#include <stdint.h>

#include "capture/stacks.h"
#include "capture/unwinding.h"
#include "profile/journal_writer.h"

/* A new stack's record: what kind each of its frames is, and a mark between those of a sample and those that were known before. One thread. */
#define STACK_RECORD_FRAMES 8192 /* more do not fit into a record of 64 KiB */

struct stack_record {
	struct journal_writer *writer; /* borrowed */
	uint8_t kinds[STACK_RECORD_FRAMES];
	uint64_t values[STACK_RECORD_FRAMES];
};

/*
 * frames: those of the key, one behind the other, fewer than STACK_RECORD_FRAMES. unwound: how the user frames came about; NULL: the kernel followed
 * frame pointers. mark: the id of the FRAME that stands where unwound->stitched_from is.
 */
void stack_record_append(struct stack_record *record, uint32_t id, const struct stacks_key *key,
	const uint64_t *frames, const struct unwinding_stack *unwound, uint32_t mark);

#endif
