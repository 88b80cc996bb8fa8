#include "commands/page.h"

#include "protocol/limits.h"

/* {"jsonrpc":"2.0","id":…,"result":{…,"next_cursor":…}}: an id of 128 bytes may become six times as long. */
#define ENVELOPE_BYTES (6 * LIMIT_ID_BYTES + 6 * LIMIT_ID_BYTES + 256)

void page_init(struct page *page, size_t reserved)
{
	*page = (struct page){.items = json_array(), .bytes = ENVELOPE_BYTES + reserved};
}

bool page_add(struct page *page, json_t *item)
{
	size_t bytes = json_dumpb(item, NULL, 0, JSON_COMPACT | JSON_ENSURE_ASCII) + 1;
	bool is_first = json_array_size(page->items) == 0 && !page->is_shared;
	bool fits = is_first || page->bytes + bytes <= LIMIT_LINE_BYTES;
	if (page->is_full || !fits) {
		page->is_full = true;
		json_decref(item);
		return false;
	}
	page->bytes += bytes;
	page->is_full = json_array_append_new(page->items, item) != 0;
	return !page->is_full;
}

json_t *page_finish(struct page *page, const char *name, const char *cursor)
{
	json_t *result = json_pack("{s:o*}", name, page->items);
	page->items = NULL;
	if (page->is_full && cursor != NULL && result != NULL) {
		json_object_set_new(result, "next_cursor", json_string(cursor));
	}
	return result;
}
