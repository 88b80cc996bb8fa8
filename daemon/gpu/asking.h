#ifndef GPU_ASKING_H
#define GPU_ASKING_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/error.h"

/*
 * Runs a program (argv[0] is a path, or looked up in our PATH) without input and collects what it says, for at most limit_ms; then it is killed. environment
 * NULL: our own; what would put layers into it is left out of either. out is NUL-terminated, cut at size. False: err (io: it cannot be
 * run, timeout, or it ended by a signal or with another status than 0). Blocking; any thread.
 */
bool asking_run(const char *const *argv, const char *const *environment, unsigned limit_ms,
	char *out, size_t size, struct error *err);

#endif
