#ifndef UNWIND_CFI_EXPRESSION_H
#define UNWIND_CFI_EXPRESSION_H

#include <stddef.h>
#include <stdint.h>

#include "unwind/registers.h"

#define CFI_EXPRESSION_STEPS 1024
#define CFI_EXPRESSION_STACK 64
#define CFI_EXPRESSION_BYTES 1024 /* of one expression; longer ones are unknown */

enum cfi_value {
	CFI_VALUE,            /* found */
	CFI_VALUE_UNKNOWN,    /* an operation, or a register, that is not known here */
	CFI_VALUE_UNREADABLE, /* memory that is not in the copy: *address says which */
	CFI_VALUE_BROKEN, /* a stack that runs empty or over, a division by zero, a loop, bytes that end too early */
};

struct cfi_expression {
	const uint8_t *bytes; /* borrowed */
	size_t len;
};

/*
 * A DWARF expression as call-frame information may have it: DWARF 5, 2.5.1 without what 6.4.2 excludes, 64-bit values. The stack begins
 * with *initial (the CFA, for a register's rule) or empty (NULL, for the CFA). Ends for any bytes. *address is set with
 * CFI_VALUE_UNREADABLE, *value with CFI_VALUE.
 */
enum cfi_value cfi_expression_run(const struct cfi_expression *expression,
	const struct unwind_frame *frame, const uint64_t *initial, uint64_t *value, uint64_t *address);

#endif
