#ifndef ANALYZER_SYSCALLS_H
#define ANALYZER_SYSCALLS_H

#include <stdbool.h>

#include "protocol/error.h"

/*
 * The first wall of the sandbox: a list of the system calls that this process may still make (seccomp(2), by libseccomp). It reads and
 * writes what is open, receives and sends on its channel alone, gets memory that is not code, and ends. Any other call fails with EPERM, so that
 * a library that only tries goes on; a call by another architecture's numbers (i386, x32) kills with SIGSYS. It lasts until exit.
 *
 * No call on the list takes a path, which is why fstat must not be made of one (fstat_linux.c).
 *
 * False: the kernel has no filters, or took none: err.
 */
bool syscalls_restrict(struct error *err);

#endif
