#ifndef SAMPLER_PERF_SYSTEM_H
#define SAMPLER_PERF_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/error.h"

/* What this system allows: sysctls, processors, locked memory. */

/* The number in a file of /proc/sys/kernel; otherwise when it cannot be read. */
int64_t perf_system_number(const char *name, int64_t otherwise);

/* How long the kernel's tick is. */
uint64_t perf_system_tick_ns(void);

/* The processors that are online. *cpus is owned (free). */
bool perf_system_cpus(int **cpus, size_t *count, struct error *err);

/* The bytes that this user may still lock for rings, as far as it can be told; UINT64_MAX: no limit. Other processes of
 * the same user draw on the same quota without a trace, so mapping can fail with less. */
uint64_t perf_system_lockable(size_t cpu_count);

#endif
