#ifndef ANALYZER_LANDLOCK_H
#define ANALYZER_LANDLOCK_H

#include <stdbool.h>

#include "protocol/error.h"

/*
 * The second wall of the sandbox (landlock(7)), for what gets through the first one: from here on this process opens, makes, links and removes no
 * file at all, and, by the version of the kernel, truncates none by its path (3), binds and connects no TCP port (4), sends no ioctl
 * to a device it opens (5), and reaches no abstract Unix socket and signals no process outside (6). Descriptors that are open stay as they
 * are. It lasts until exit; no_new_privs must be set. What later kernels can refuse besides is not refused.
 *
 * True also where the kernel has no Landlock. False: it has, and did not do it; err.
 */
bool landlock_refuse_all(struct error *err);

#endif
