#ifndef UNWIND_CFI_TABLE_H
#define UNWIND_CFI_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"
#include "image/image_cache.h"
#include "unwind/cfi_pointer.h"

/*
 * .eh_frame_hdr: a table of all FDEs, sorted by the first address of their code, that is searched in the file (LSB Core 5.0, 10.6.2).
 *
 *   version 1  encoding of the pointer  of the count  of the table  pointer to .eh_frame  count  {first address, FDE} × count
 *
 * Usable is what every linker writes: entries of two signed 32-bit numbers relative to the header. Zero is a table that is not usable.
 */
struct cfi_table {
	struct image_part part;
	uint64_t frames; /* the address of .eh_frame; 0: it does not tell */
	uint64_t entries_at, count;
	bool is_usable;
};

/* False: there is none that can be used; frames may be known all the same. */
bool cfi_table_open(struct cfi_table *table, const struct image *image, struct image_cache *cache);
/* The only FDE that can hold for pc: its address and what the table says is its first. CFI_NONE: pc is before all. */
enum cfi_result cfi_table_find(const struct cfi_table *table, const struct image *image,
	struct image_cache *cache, uint64_t pc, uint64_t *fde, uint64_t *begin);

#endif
