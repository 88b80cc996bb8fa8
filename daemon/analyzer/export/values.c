#include "analyzer/export/values.h"

#include <stdlib.h>

#include "protocol/limits.h"
#include "protocol/text.h"

#define MOST_SHARE 1e9 /* of a journal that tells nonsense */

json_t *value_number(uint64_t value)
{
	return json_integer((json_int_t)(value < LIMIT_INTEGER ? value : LIMIT_INTEGER));
}

json_t *value_signed(int64_t value)
{
	return json_integer((json_int_t)value);
}

json_t *value_share(uint64_t part, uint64_t whole)
{
	double value = whole == 0 ? 0.0 : (double)part / (double)whole;

	value = value < MOST_SHARE ? value : MOST_SHARE;
	return json_real((double)(uint64_t)(value * 1e4 + 0.5) / 1e4);
}

bool value_set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value) == 0;
}

bool value_set_text(json_t *object, const char *name, const struct strings *strings, uint32_t id)
{
	struct bytes_text bytes = strings_text(strings, id);

	return id == 0 || text_set(object, name, bytes.data, bytes.len);
}

static int compare(const void *left, const void *right)
{
	const struct value_ranked *a = left;
	const struct value_ranked *b = right;

	if (a->samples != b->samples) {
		return a->samples > b->samples ? -1 : 1;
	}
	return a->index < b->index ? -1 : a->index > b->index;
}

void value_rank(struct value_ranked *items, size_t count)
{
	if (count > 1) {
		qsort(items, count, sizeof(*items), compare);
	}
}
