#ifndef UNWIND_REGISTERS_H
#define UNWIND_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unwind/machine.h"

/* Where a thread is, as far as a walk follows it. lr is for machines whose calls leave the return address in a register. */
struct unwind_regs {
	uint64_t pc, sp, fp, lr, base; /* unwind_machine.base */
};

/* A copied piece of a stack, from the stack pointer upwards. Borrowed. */
struct unwind_memory {
	const uint8_t *bytes;
	uint64_t address;
	size_t len;
};

/* Reads a word of the machine. False: it is not in the copy, or not wholly. */
static inline bool unwind_memory_read(
	const struct unwind_memory *memory, uint64_t address, uint64_t *value)
{
	uint64_t at = address - memory->address;

	if (memory->len < sizeof(*value) || at > memory->len - sizeof(*value)) {
		return false;
	}
	memcpy(value, memory->bytes + at, sizeof(*value));
	return true;
}

/* What expressions may look at: one frame's registers and the copy. */
struct unwind_frame {
	const struct unwind_machine *machine;
	struct unwind_regs regs;
	bool is_fp_known;
	bool is_lr_known;
	bool is_base_known;
	/* All registers by their DWARF numbers, known for the innermost frame only. NULL beyond it. Borrowed. */
	const uint64_t *others;
	uint64_t others_known; /* bit n: others[n] is one */
	const struct unwind_memory *memory;
};

/* The register of this DWARF number. False: a walk does not know it in this frame. */
bool unwind_frame_register(const struct unwind_frame *frame, uint64_t number, uint64_t *value);

#endif
