#ifndef COMMANDS_SIGNAL_NAMES_H
#define COMMANDS_SIGNAL_NAMES_H

#include <jansson.h>

/* Signals as the wire spells them (signal(7)): told as "SIGTERM", accepted as "TERM", "SIGTERM" or 15. Pure; any thread. */

#define SIGNAL_NAME_BYTES 16

/* "SIGKILL"; real-time ones "SIGRTMIN+3"; a number that is none: "SIG99". Returns out. */
const char *signal_name(int number, char out[SIGNAL_NAME_BYTES]);

/* 0: it is none. */
int signal_from_json(const json_t *value);

/* A JSON string, or null for 0. Owned. */
json_t *signal_to_json(int number);

#endif
