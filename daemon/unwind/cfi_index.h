#ifndef UNWIND_CFI_INDEX_H
#define UNWIND_CFI_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/cfi_entry.h"

/*
 * All FDEs of a section by the first address of their code: for images without a usable .eh_frame_hdr, and for .debug_frame. Made once, never
 * changed; takes a fraction of a microsecond an FDE. FDEs that cannot be read are left out, and those of code that the linker threw away.
 */
struct cfi_index;

#define CFI_INDEX_ENTRIES 524288 /* FDEs; those behind are not known: 8 MiB */
#define CFI_INDEX_MARKS   1024 /* end marks that are read past: linkers leave them in the middle */

/* NULL when memory is out. section is not kept. */
struct cfi_index *cfi_index_create(
	const struct cfi_section *section, struct image_cache *cache, struct cfi_scratch *scratch);
void cfi_index_destroy(struct cfi_index *index);
/* The offset of the last FDE that begins at or before pc. False: there is none. */
bool cfi_index_find(const struct cfi_index *index, uint64_t pc, uint64_t *at);

#endif
