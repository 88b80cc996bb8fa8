#ifndef UNWIND_RULE_H
#define UNWIND_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "unwind/cfi_row.h"
#include "unwind/machine.h"

/*
 * A row as a walk runs it, in 16 bytes: nearly all rows of nearly all programs are one of a few forms (CFA = sp or fp + n, return address and
 * frame pointer at the CFA or where they were). Every other row is kept whole in a table of such rows, and the rule is its number.
 */
enum rule_kind {
	RULE_SP,      /* CFA = sp + cfa_offset */
	RULE_FP,      /* CFA = fp + cfa_offset */
	RULE_ROW,     /* row number cfa_offset of the table */
	RULE_END,     /* no caller */
	RULE_SIGNAL,  /* the trampoline behind a signal handler: the kernel's layout */
	RULE_CODE,    /* code of which nothing is known: the next method's */
	RULE_UNKNOWN, /* something is known that is not understood */
	RULE_BROKEN,
};

enum rule_flags {
	RULE_RA_IN_LR = 1, /* else it is at CFA + ra_offset */
	RULE_FP_AT = 2,    /* fp is at CFA + fp_offset, else it is unchanged */
	RULE_BASE_AT =
		8, /* the base register is at CFA + base_slot * RULE_SLOT_BYTES, else it is unchanged */
	RULE_SIGNED = 4,   /* the return address is signed */
	RULE_IN_FILE = 16, /* RULE_CODE: of a file that tells of other code, but not of this */
};

#define RULE_SLOT_BYTES 8

struct rule {
	int32_t cfa_offset, ra_offset, fp_offset;
	uint8_t kind, flags; /* enum rule_kind, enum rule_flags */
	int16_t base_slot;
};

/* Rows that are kept whole, each once. Zero is an empty table. One thread's. */
struct rule_row {
	struct cfi_row row;
	uint64_t hash;
	uint8_t *expressions; /* owned: of all its rules, one behind the other */
};

#define RULE_ROWS 1024 /* distinct ones; a program has some ten */

struct rule_rows {
	VEC(struct rule_row) rows;
};

void rule_rows_finish(struct rule_rows *rows);
/* Forgets all: every rule of kind RULE_ROW that was made is invalid. */
void rule_rows_clear(struct rule_rows *rows);

/* The rule that a row is. False: the table is full, or memory is out: rule is untouched. */
bool rule_make(const struct unwind_machine *machine, const struct cfi_row *row,
	struct rule_rows *rows, struct rule *rule);

#endif
