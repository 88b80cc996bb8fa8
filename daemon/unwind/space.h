#ifndef UNWIND_SPACE_H
#define UNWIND_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "unwind/cfi.h"

/*
 * The code that is mapped in one process: sorted, without overlap. A walk asks it at a pc that it has not seen, so it is not made for speed but
 * for change. One thread.
 *
 * state stands for what is mapped: walks keep rules by it. It changes when an address that had code gets a different meaning, and
 * takes a number that no space of the thread had before; code in a place where none was changes nothing that is known. A copy
 * (fork) has the same state until either changes at all.
 */
struct unwind_range {
	uint64_t start, end; /* end excluded */
	uint64_t bias;       /* address - bias is the image's */
	struct cfi *cfi;     /* owned reference; NULL: code without a file (a JIT's) */
};

#define UNWIND_RANGES 65536 /* of a process; vm.max_map_count is 65530 by default */

struct unwind_space {
	VEC(struct unwind_range) ranges;
	uint64_t *states; /* borrowed: the last state given out */
	uint64_t state;
	bool is_shared; /* another space has the same state */
};

/* states is the unwinder's (unwind_states). */
void unwind_space_init(struct unwind_space *space, uint64_t *states);
void unwind_space_finish(struct unwind_space *space);

/* What a process maps. cfi is borrowed (a reference is taken); NULL: no file, or one that cannot be read. */
struct unwind_mapping {
	uint64_t start, length, file_offset;
	bool is_executable; /* others only take away what was there */
	struct cfi *cfi;
};

/*
 * Replaces what it overlaps. A mapping that shows none of the image's segments is code without a file. (Who knows that memory without a file holds an
 * image's code gives the image.) False: memory is out, or there are UNWIND_RANGES; what it overlaps is gone then.
 */
bool unwind_space_put(struct unwind_space *space, const struct unwind_mapping *mapping);
/* munmap. False: memory is out, when one range becomes two. */
bool unwind_space_remove(struct unwind_space *space, uint64_t start, uint64_t length);
/* exec. */
void unwind_space_clear(struct unwind_space *space);
/* fork: space, which must be empty, becomes equal to from. False: memory is out. */
bool unwind_space_copy(struct unwind_space *space, struct unwind_space *from);
/* NULL: no code is known to be there. Valid until the next change. */
const struct unwind_range *unwind_space_find(const struct unwind_space *space, uint64_t address);

#endif
