#ifndef PROTOCOL_CLOCK_H
#define PROTOCOL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Any thread; async-signal-safe (clock_gettime(2), signal-safety(7)). */

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_monotonic_ms(void)
{
	return clock_monotonic_ns() / 1000000;
}

/* The wall clock, since 1970. */
static inline uint64_t clock_unix_us(void)
{
	return clock_read_ns(CLOCK_REALTIME) / 1000;
}

#endif
