#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include <stdbool.h>

/*
 * What this kernel has to confine a process with. The analyzer uses it (analyzer/sandbox.h), Doctor tells it. Looking changes nothing.
 * Any thread.
 */

/* Filters of system calls (seccomp(2), CONFIG_SECCOMP_FILTER). */
bool sandbox_has_seccomp(void);
/* The version of Landlock's interface (landlock(7)); 0: the kernel has none, or it was not started with it. */
int sandbox_landlock_version(void);

#endif
