#include "analyzer/symbol/source.h"

#include <stdbool.h>
#include <string.h>

static size_t leading_underscores(const char *name, size_t len)
{
	size_t count = 0;

	while (count < len && name[count] == '_') {
		count++;
	}
	return count;
}

static bool is_better(const char *name, size_t len, const char *than, size_t than_len)
{
	size_t mine = leading_underscores(name, len);
	size_t theirs = leading_underscores(than, than_len);

	if (than_len == 0 || mine != theirs) {
		return than_len == 0 || mine < theirs;
	}
	if (len != than_len) {
		return len < than_len;
	}
	return memcmp(name, than, len) < 0;
}

size_t source_best_name(const struct source_ops *ops, void *self, const struct table *table,
	const struct table_range *range, char *name, char *scratch, size_t room)
{
	size_t best = 0;

	for (uint32_t i = 0; i < range->count; i++) {
		const struct table_symbol *symbol = &table->symbols.items[range->first + i];
		size_t len = ops->read_name(self, symbol, scratch, room);

		if (len > 0 && is_better(scratch, len, name, best)) {
			memcpy(name, scratch, len);
			best = len;
		}
	}
	return best;
}
