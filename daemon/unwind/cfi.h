#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"
#include "image/image_cache.h"
#include "unwind/cfi_entry.h"
#include "unwind/cfi_pointer.h"
#include "unwind/cfi_row.h"
#include "unwind/machine.h"

/*
 * The call-frame information of one image: .eh_frame, found through its search table or an index of our own, and .debug_frame where .eh_frame has
 * nothing. Nothing is built ahead: a row is made when it is asked for. What is built then (an index) is built once, under a lock, and shared:
 * any number of threads may ask, each with a reader of its own. Counted by reference.
 */
struct cfi;

/* What one thread needs to ask. */
struct cfi_reader {
	struct image_cache *cache;   /* owned */
	struct cfi_scratch *scratch; /* owned */
};

/* False: memory is out, and nothing is held. finish of a zeroed one is fine. */
bool cfi_reader_init(struct cfi_reader *reader);
void cfi_reader_finish(struct cfi_reader *reader);

/* Holds a reference of its own to image. Reads a few bytes. NULL: memory is out. */
struct cfi *cfi_create(struct image *image, struct cfi_reader *reader);
struct cfi *cfi_hold(struct cfi *cfi);
void cfi_release(struct cfi *cfi);
/* Valid as long as the reference. */
const struct image *cfi_image(const struct cfi *cfi);
/* NULL: code of a machine that is not known; every row is unknown then. */
const struct unwind_machine *cfi_machine(const struct cfi *cfi);

/*
 * The row that holds at pc, an address of the image. CFI_NONE: no FDE says anything about it. The row's expressions are borrowed from the
 * reader until its next use. range (or NULL): where it holds.
 */
enum cfi_result cfi_row_at(struct cfi *cfi, struct cfi_reader *reader, uint64_t pc,
	struct cfi_row *row, struct cfi_range *range);
/* The entry itself, for who wants every row of it. */
enum cfi_result cfi_entry_at(
	struct cfi *cfi, struct cfi_reader *reader, uint64_t pc, struct cfi_entry *entry);

#endif
