#ifndef PROCESS_TERMINAL_H
#define PROCESS_TERMINAL_H

#include <stdbool.h>

#include "protocol/error.h"

/* Pseudo-terminals (pty(7)), 24 rows of 80 columns at first. Any thread. */

/* Both ends, close-on-exec, nobody's controlling terminal; the caller's. On failure neither is open. */
bool terminal_open(int *master, int *slave, struct error *err);
/* The program is told by SIGWINCH. */
bool terminal_resize(int fd, unsigned rows, unsigned columns, struct error *err);
/* The character that ends input at the beginning of a line (VEOF of termios(3)) as it is now; -1: there is none. */
int terminal_eof_character(int fd);

#endif
