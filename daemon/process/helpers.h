#ifndef PROCESS_HELPERS_H
#define PROCESS_HELPERS_H

#include <sys/types.h>

struct processes;

/*
 * Helpers of the daemon's that lead a group of their own and would not notice its end: the guard (process/guard.h) kills them with the daemon, as it does programs. The
 * best that can be had: where the guard does not listen, or LIMIT_HELPERS are known, a helper has its own limits alone. Loop thread. processes NULL: nobody guards.
 */
void helpers_add(struct processes *processes, pid_t group);
/* Before it is reaped: afterwards the number may be anybody's. One that is not known is fine. */
void helpers_remove(struct processes *processes, pid_t group);

#endif
