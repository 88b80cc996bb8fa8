#ifndef PROTOCOL_PROGRAMS_H
#define PROTOCOL_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/error.h"

/*
 * Where the four programs find each other: in the build folder, and when installed. The first that exists and
 * may be executed: $PROFD_<NAME> (PROFD_GATE, PROFD_ANALYZER, PROFD_DAEMON), beside the running executable,
 * the build folder's places relative to it, the installed libexec and bin folders.
 * name is "profd", "profd-gate" or "profd-analyzer". The error lists the places. Any thread.
 */
bool programs_find(const char *name, char *path, size_t path_bytes, struct error *err);

#endif
