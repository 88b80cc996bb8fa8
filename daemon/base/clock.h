#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds, and the wall clock in microseconds since 1970. Any thread. */
uint64_t clock_monotonic_ns(void);
uint64_t clock_unix_us(void);

#endif
