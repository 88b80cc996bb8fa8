#ifndef UNWIND_CFI_PROGRAM_H
#define UNWIND_CFI_PROGRAM_H

#include <stdint.h>

#include "unwind/cfi_entry.h"
#include "unwind/cfi_row.h"
#include "unwind/machine.h"

#define CFI_REMEMBERED 64 /* rows that a program may remember at once */

/*
 * Runs the programs of an entry's CIE and then its own, up to the row that holds at pc, an address of the image in [begin, end): every
 * DW_CFA_ of DWARF 5, 6.4.2 and 7.24, those of GNU, and those of aarch64 (Arm's "DWARF for the Arm 64-bit Architecture", 4.4). Ends for any
 * bytes: each step takes at least one of the at most CFI_ENTRY_BYTES. CFI_FOUND: the row, whose expressions are borrowed from the
 * entry's scratch, and where it holds (range may be NULL). CFI_UNKNOWN: an instruction that is not known. CFI_BROKEN: bytes that end too early, or more restored than remembered.
 */
enum cfi_result cfi_program_run(const struct unwind_machine *machine, const struct cfi_entry *entry,
	uint64_t pc, struct cfi_row *row, struct cfi_range *range);

#endif
