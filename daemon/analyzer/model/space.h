#ifndef ANALYZER_MODEL_SPACE_H
#define ANALYZER_MODEL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* The mappings of one process at one moment: sorted, without overlap. Zero is an empty space. */
struct space_mapping {
	uint64_t start, end; /* end: the first address behind it */
	uint64_t file_offset;
	uint32_t image;
};

struct space {
	VEC(struct space_mapping) mappings;
};

void space_finish(struct space *space);
/* Replaces what it overlaps; an empty mapping changes nothing. False: memory is out. */
bool space_map(struct space *space, const struct space_mapping *mapping);
bool space_unmap(struct space *space, uint64_t start, uint64_t end);
/* space becomes equal to from. */
bool space_copy(struct space *space, const struct space *from);
void space_clear(struct space *space);
/* NULL when nothing is there. Valid until the next change. */
const struct space_mapping *space_find(const struct space *space, uint64_t address);

#endif
