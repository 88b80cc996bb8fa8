#ifndef GATE_WORDS_H
#define GATE_WORDS_H

#include <stdbool.h>

/* What the parts of profd-gate share: its last word, numbers of its command line, its descriptors. Nothing but libc; allocates nothing. */

/*
 * Sends the failed line of protocol/gate.h to fd (below 0: standard error) and exits. Control characters would end the line or confuse a
 * terminal: each becomes a question mark.
 */
_Noreturn void gate_fail(int fd, const char *stage, int errno_value, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* A whole number in that base; false for anything else. */
bool gate_number(const char *text, int base, unsigned long *value);

/* All above 2 except fd. */
void gate_close_others(int fd);

#endif
