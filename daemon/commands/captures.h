#ifndef COMMANDS_CAPTURES_H
#define COMMANDS_CAPTURES_H

#include <jansson.h>

#include "commands/daemon.h"

/* A record as it is now, of a capture that runs or has ended. Owned; NULL: err is capture_not_found. */
json_t *captures_record(const struct daemon *daemon, const char *capture_id, struct error *err);

#endif
