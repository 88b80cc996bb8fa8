#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Interned byte strings: equal bytes get one id, from 1 upwards. Memory is kept until destroy. Not thread-safe. */
struct strings;

struct strings *strings_create(void);
void strings_destroy(struct strings *strings);
/* The id; 0 when memory is out. *is_new (may be NULL) tells whether it was added now. */
uint32_t strings_intern(struct strings *strings, const char *text, size_t len, bool *is_new);
/* The text of an id; also NUL-terminated behind len. Empty for 0 and unknown ids. Valid until destroy. */
struct bytes_text strings_text(const struct strings *strings, uint32_t id);
size_t strings_count(const struct strings *strings);

#endif
