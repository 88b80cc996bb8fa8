#ifndef PROCESS_SPAWNING_H
#define PROCESS_SPAWNING_H

#include <spawn.h>

/*
 * For profd's own helpers (posix_spawn(3)), of attributes that were initialized: no signal ignored or blocked, whatever the daemon and its thread do with
 * them, and a group of its own: a Ctrl-C at a daemon in the foreground must not end it. An errno, or 0.
 */
int spawning_set_attributes(posix_spawnattr_t *attributes);

#endif
