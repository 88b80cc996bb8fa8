#ifndef CAPTURE_MAPPINGS_H
#define CAPTURE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct mappings_range {
	uint64_t start, end; /* end excluded */
	uint32_t image;
	uint64_t
		bias; /* address - bias is the offset in the image; equal for two parts of one loaded file */
};

/* What is mapped where in one process, to notice when an address begins to mean something else. One thread. */
struct mappings {
	VEC(struct mappings_range) ranges; /* sorted, without overlap */
	bool is_incomplete;                /* there were too many: some are not known */
};

#define MAPPINGS_MAX 65536

/* True when addresses in it may have meant something else so far. */
bool mappings_put(struct mappings *mappings, const struct mappings_range *range);
/* The range that holds the address. False: none is known. */
bool mappings_find(const struct mappings *mappings, uint64_t address, struct mappings_range *range);
/* Is code known to be there? True too when not all mappings are known, or none. */
bool mappings_has(const struct mappings *mappings, uint64_t address);
/* An exec. */
void mappings_clear(struct mappings *mappings);
void mappings_finish(struct mappings *mappings);

#endif
