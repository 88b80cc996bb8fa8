#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbol/kallsyms.h"

#define NAME_BYTES 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An address of a range has a name that stands in the text behind that very address. */
static void check_name(struct kallsyms *kallsyms, const struct table_range *range)
{
	const struct table *table = &kallsyms->table;
	char name[NAME_BYTES], scratch[NAME_BYTES];
	size_t len =
		source_best_name(&kallsyms_source, kallsyms, table, range, name, scratch, NAME_BYTES);
	if (memchr(name, '\n', len) != NULL || memchr(name, '\t', len) != NULL) {
		abort();
	}
	for (uint32_t i = 0; i < range->count; i++) {
		const struct table_symbol *symbol = &table->symbols.items[range->first + i];
		const char *at = (const char *)kallsyms->text.data + symbol->name;
		if (at[-1] != ' ' || at[-3] != ' ' || symbol->start > range->start) {
			abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buffer text = {0};
	if (!buffer_append(&text, data, size)) {
		abort();
	}
	struct kallsyms *kallsyms = kallsyms_create(&text);
	if (kallsyms == NULL || text.data != NULL) {
		abort();
	}
	uint64_t end = 0;
	for (size_t i = 0; i < kallsyms->table.ranges.len; i++) {
		const struct table_range *range = &kallsyms->table.ranges.items[i];
		if (range->start < end || range->end <= range->start || kallsyms->is_hidden ||
			table_find(&kallsyms->table, range->start) != range ||
			table_find(&kallsyms->table, range->end - 1) != range) {
			abort();
		}
		end = range->end;
		check_name(kallsyms, range);
	}
	kallsyms_destroy(kallsyms);
	return 0;
}
