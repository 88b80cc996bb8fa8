#ifndef GATE_PROGRAM_H
#define GATE_PROGRAM_H

/*
 * Which file PROGRAM is, and why it cannot be run, in words for a person. Both functions exit with the failed line of protocol/gate.h when it
 * cannot be. Nothing but libc; allocates nothing.
 */

/* Finds the program as execvp(3) would, into path[PATH_MAX], and sees that it looks executable. */
void gate_find_program(int fd, const char *name, char *path);

/* After an execve that failed. */
_Noreturn void gate_explain_exec(int fd, const char *path, int errno_value);

#endif
