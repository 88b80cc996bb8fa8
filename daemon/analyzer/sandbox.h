#ifndef ANALYZER_SANDBOX_H
#define ANALYZER_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/error.h"

/*
 * What this process gives up before it reads the first byte that others chose. One implementation per system. Afterwards it has
 * descriptors 0 to 2, its channel (ANALYSIS_FD) and what comes through it, and can read, write and close those, allocate memory, and end:
 *
 *   descriptors   all others are closed
 *   limits        memory, CPU time, descriptors; no core file, no process
 *   privileges    no capability, none to be won by exec; no debugger of the same user, no core dump by a handler
 *   Landlock      analyzer/landlock.h, where the kernel has it
 *   system calls  analyzer/syscalls.h
 *
 * A build for sanitizers has no limit of memory (their shadow takes terabytes of addresses) and only the first two besides: a leak
 * checker starts a thread that traces us, and reads /proc.
 */
struct sandbox_limits {
	uint64_t memory_bytes; /* of addresses: what is mapped, used or not */
	uint64_t cpu_seconds;  /* of all its life; SIGXCPU ends it then */
	uint64_t descriptors;
};

/* The numbers of profile/analysis.h: half of the machine's memory within their bounds, and as many descriptors as a capture has images. */
struct sandbox_limits sandbox_default_limits(void);

/*
 * For good, and before any thread is started. What is limited more already stays so. False: a wall that must be there could not be had
 * (err: backend_unavailable, io, limit_exceeded, not_permitted); nothing from outside must be read then.
 */
bool sandbox_enter(const struct sandbox_limits *limits, struct error *err);

#endif
