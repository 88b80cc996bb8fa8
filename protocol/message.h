#ifndef PROTOCOL_MESSAGE_H
#define PROTOCOL_MESSAGE_H

#include <stddef.h>

#include <jansson.h>

#include "protocol/error.h"

/* JSON texts to values and back, with the contract's rules. Pure; any thread. */

/*
 * Parses one message: UTF-8, no duplicate names, depth at most LIMIT_JSON_DEPTH (checked over the bytes, before
 * jansson recurses), the top an object or an array. A string may hold NUL: json_string_length tells. When an integer does
 * not fit 64 bits, all of the text's integers are reals. NULL: err is parse_error and says where. Owned by the caller.
 */
json_t *message_parse(const char *text, size_t len, struct error *err);

/* A message as one line of pure ASCII with its line end. *len includes the line end. Owned (free); NULL when memory is out. */
char *message_dump(const json_t *value, size_t *len);

#endif
