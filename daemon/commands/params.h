#ifndef COMMANDS_PARAMS_H
#define COMMANDS_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "commands/command.h"
#include "protocol/error.h"

/* Checks values from the wire against a table of parameters. Pure; any thread. */

#define PARAMS_SHOWN_BYTES 80

/*
 * A checked copy of values (NULL: none), with members that were null removed and reals without fraction made integers. owner is named in errors
 * ("StartSamplingProfile"); prefix stands before each name ("", "profile."). Nothing is checked by halves: unknown names first, then
 * each row of the table in its order. NULL: err is bad_params (detail unknown_parameter, missing_parameter, wrong_type, out_of_range) or unsupported. Owned.
 */
json_t *params_check(const struct param *table, const char *owner, const char *prefix,
	const json_t *values, struct error *err);

/* A value as short ASCII text for a message: a long one is cut. */
void params_show(const json_t *value, char out[PARAMS_SHOWN_BYTES]);

/* bad_params with detail wrong_type. Returns false. For what a table cannot say. */
bool params_refuse(struct error *err, const char *name, const json_t *value, const char *allowed);

/* The type's name in Describe. */
const char *params_type_name(enum param_type type);

#endif
