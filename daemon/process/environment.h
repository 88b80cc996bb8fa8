#ifndef PROCESS_ENVIRONMENT_H
#define PROCESS_ENVIRONMENT_H

#include <stdbool.h>

#include "protocol/error.h"

/*
 * The environment of a target: base (NULL: nothing) less the daemon's private variables, then the changes in their order,
 * "NAME=value" or "NAME" to unset (NULL: none). A private variable that a change names is kept.
 * Both end with NULL. Sorted by name. Owned by the caller with one free(); the texts are borrowed from base and changes.
 * Errors: bad_params (an empty name), limit_exceeded.
 */
char **environment_create(const char *const *base, const char *const *changes, struct error *err);

/* The same texts, which are the copy's own. Owned by the caller with one free(). NULL: memory is out. */
char **environment_copy(const char *const *texts);

#endif
