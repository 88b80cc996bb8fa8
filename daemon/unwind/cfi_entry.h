#ifndef UNWIND_CFI_ENTRY_H
#define UNWIND_CFI_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "image/image_cache.h"
#include "unwind/cfi_pointer.h"

/*
 * The entries of .eh_frame and .debug_frame: a CIE says what many functions have in common, an FDE how one function's frame changes.
 *
 *   entry = length (4 bytes, or 0xffffffff and 8)  id (4 bytes; 8 in .debug_frame's long form)  body
 *   CIE body = version  augmentation\0  code align  data align  return address column  [augmentation data]  program
 *   FDE body = first address  length  [augmentation data]  program
 *
 * DWARF 5, 6.4.1; LSB Core 5.0, 10.6.1 for what .eh_frame does otherwise: ids count backwards, a CIE's is 0, and the
 * augmentation "z…" says how addresses are written.
 */
struct cfi_section {
	const struct image *image; /* borrowed */
	struct image_part part;
	const uint8_t *unpacked; /* borrowed; NULL: read from the image */
	bool is_debug;           /* .debug_frame */
};

#define CFI_ENTRY_BYTES 65536 /* of one entry; larger ones are unknown */

/* Where entries are read to. One thread's. */
struct cfi_scratch {
	uint8_t cie[CFI_ENTRY_BYTES], fde[CFI_ENTRY_BYTES];
};

/* A program's bytes, borrowed from the scratch, and the image's address of the first of them. */
struct cfi_code {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
};

struct cfi_cie {
	uint64_t code_align, ra_register;
	int64_t data_align;
	uint8_t encoding; /* of addresses */
	bool has_data;    /* entries have augmentation data with a length */
	bool is_signal;   /* the frame was interrupted, not called */
	struct cfi_code program;
};

struct cfi_entry {
	struct cfi_cie cie;
	uint64_t begin, end; /* addresses of the image */
	struct cfi_code program;
};

/* One entry's place, for who goes through all of them. */
struct cfi_place {
	uint64_t at, next; /* offsets in the section */
	bool is_cie;       /* or an end mark */
	uint64_t cie;      /* an FDE's */
};

/* Where the entry at an offset ends and what it is. CFI_NONE: the section ends here. */
enum cfi_result cfi_entry_place(const struct cfi_section *section, struct image_cache *cache,
	uint64_t at, struct cfi_place *place);
/* Reads an FDE and its CIE. CFI_NONE never. entry borrows from scratch. */
enum cfi_result cfi_entry_read(const struct cfi_section *section, struct image_cache *cache,
	uint64_t at, struct cfi_scratch *scratch, struct cfi_entry *entry);

#endif
