#ifndef UNWIND_CFI_ROW_H
#define UNWIND_CFI_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How the registers of a function's caller are found at one place of the function: one row of the table of DWARF 5, 6.4.1, of which a walk needs five
 * columns. The CFA is the value of sp before the call, unless sp has a rule of its own.
 */
enum cfi_rule_kind {
	CFI_RULE_UNSPECIFIED,   /* the program says nothing: the psABI's default */
	CFI_RULE_UNDEFINED,     /* lost; for a return address: there is no caller */
	CFI_RULE_SAME,          /* not changed */
	CFI_RULE_AT,            /* in memory at CFA + offset */
	CFI_RULE_VALUE,         /* CFA + offset itself */
	CFI_RULE_REGISTER,      /* in another register; for the CFA: plus offset */
	CFI_RULE_AT_EXPRESSION, /* in memory where the expression says */
	CFI_RULE_EXPRESSION,    /* the expression's value itself */
};

struct cfi_rule {
	enum cfi_rule_kind kind;
	uint32_t expression_len;
	uint64_t number; /* the register */
	int64_t offset;
	const uint8_t *expression; /* borrowed from where the program was */
};

enum cfi_column { CFI_SP, CFI_FP, CFI_RA, CFI_BASE, CFI_COLUMNS };

struct cfi_row {
	struct cfi_rule cfa; /* UNSPECIFIED, REGISTER, EXPRESSION */
	struct cfi_rule rules[CFI_COLUMNS];
	bool is_ra_in_lr; /* the return address' column is the machine's link register */
	bool is_signed;   /* aarch64: the saved return address is signed */
	bool is_signal;   /* the caller was interrupted: its address is exact, and not behind a call */
};

/* Where a row holds: addresses of the image, end excluded. */
struct cfi_range {
	uint64_t begin, end;
};

#endif
