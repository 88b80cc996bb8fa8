#ifndef CLIENT_REPLY_H
#define CLIENT_REPLY_H

#include <stdio.h>

#include <jansson.h>

/* Members of records and events, and how they are shown. Borrowed; pure but for the printing. */

/* "" when the member is missing or no string. */
const char *reply_string(const json_t *object, const char *name);
/* 0 when the member is missing or no integer. */
json_int_t reply_integer(const json_t *object, const char *name);
/* Text of a target's choice: control characters, which could drive a terminal, become "?". Padded to width columns. NULL is "". */
void reply_print(FILE *out, const char *text, int width);

#endif
