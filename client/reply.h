#ifndef CLIENT_REPLY_H
#define CLIENT_REPLY_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Members of records and events, and how they are shown. Borrowed; pure but for the printing. */

/* "" when the member is missing or no string. */
const char *reply_string(const json_t *object, const char *name);
/* 0 when the member is missing or no integer. */
json_int_t reply_integer(const json_t *object, const char *name);
/* An id, a string or an integer, as text; "" for anything else. */
void reply_id(const json_t *id, char *text, size_t size);
/* Text of a target's choice: control characters, which could drive a terminal, become "?". Padded to width columns. NULL is "". */
void reply_print(FILE *out, const char *text, int width);
/* "2026-11-30 04:11:13", local; "-" for 0. */
void reply_print_time(FILE *out, json_int_t unix_us, int width);

/* The bytes of data_b64 (RFC 4648 section 4) or of data. Owned (free); NULL: neither is there or it is no base64, or memory is out. */
char *reply_bytes(const json_t *object, size_t *len);

#endif
