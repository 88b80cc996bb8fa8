#ifndef ANALYZER_EXPORT_VALUES_H
#define ANALYZER_EXPORT_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/strings.h"

/* How capture.json writes numbers, shares and names. Values are owned by the caller; NULL: memory is out. */

/* jansson's integers are signed; JavaScript's are exact to 2^53. */
json_t *value_number(uint64_t value);
json_t *value_signed(int64_t value);
/* From 0 to 1 with 4 decimals; 0 of nothing. */
json_t *value_share(uint64_t part, uint64_t whole);

/* Each sets a member. False: memory is out; value may be NULL, which is that. */
bool value_set(json_t *object, const char *name, json_t *value);
/* A string id, left out when it is 0; what is no UTF-8 gets a second member <name>_b64. */
bool value_set_text(json_t *object, const char *name, const struct strings *strings, uint32_t id);

/* What a list is sorted by: most first, then in its own order. */
struct value_ranked {
	uint64_t samples;
	uint32_t index;
};
void value_rank(struct value_ranked *items, size_t count);

#endif
