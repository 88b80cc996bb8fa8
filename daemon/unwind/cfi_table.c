#include "unwind/cfi_table.h"

#include <string.h>

#include "base/bytes.h"

#define TABLE_ENCODING (CFI_POINTER_DATAREL | CFI_POINTER_SDATA4)
#define ENTRY_BYTES    8
#define NEAR_ENTRIES   64 /* the last steps of a search need not ask the cache for each */
#define HEAD_BYTES                                                                                 \
	24 /* four bytes and two pointers of at most eight (longer LEB128 forms are not usable) */

bool cfi_table_open(struct cfi_table *table, const struct image *image, struct image_cache *cache)
{
	uint8_t raw[HEAD_BYTES];
	const struct image_part *part = &image_facts(image)->frame_header;
	size_t len = part->bytes < sizeof(raw) ? (size_t)part->bytes : sizeof(raw);
	struct bytes in = bytes_of(raw, len);
	const struct cfi_bases bases = {.address = part->address, .data = part->address};

	*table = (struct cfi_table){.part = *part};
	if (len == 0 || !image_cache_read(cache, image, part->offset, raw, len) || bytes_u8(&in) != 1) {
		return false;
	}
	uint8_t pointer_encoding = bytes_u8(&in), count_encoding = bytes_u8(&in);
	uint8_t table_encoding = bytes_u8(&in);

	if (in.bad || cfi_pointer_read(&in, pointer_encoding, &bases, &table->frames) != CFI_FOUND) {
		table->frames = 0;
		return false;
	}
	if (count_encoding == CFI_POINTER_OMIT || table_encoding != TABLE_ENCODING ||
		cfi_pointer_read(&in, count_encoding, &bases, &table->count) != CFI_FOUND) {
		return false;
	}
	table->entries_at = in.pos;
	table->is_usable = table->count > 0 && table->count <= (part->bytes - in.pos) / ENTRY_BYTES;
	return table->is_usable;
}

/* Entries in a row, read at once. */
static bool read_entries(const struct cfi_table *table, const struct image *image,
	struct image_cache *cache, uint64_t index, size_t count, uint8_t *to)
{
	return image_cache_read(cache, image,
		table->part.offset + table->entries_at + index * ENTRY_BYTES, to, count * ENTRY_BYTES);
}

static uint64_t address_at(const struct cfi_table *table, const uint8_t *raw)
{
	int32_t relative;

	memcpy(&relative, raw, sizeof(relative));
	return table->part.address + (uint64_t)(int64_t)relative;
}

/* The last of some entries that begins at or before pc. */
static enum cfi_result find_near(const struct cfi_table *table, const uint8_t *raw, size_t count,
	uint64_t pc, uint64_t *fde, uint64_t *begin)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (address_at(table, raw + middle * ENTRY_BYTES) <= pc) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low == 0) {
		return CFI_NONE;
	}
	*begin = address_at(table, raw + (low - 1) * ENTRY_BYTES);
	*fde = address_at(table, raw + (low - 1) * ENTRY_BYTES + sizeof(int32_t));
	return CFI_FOUND;
}

enum cfi_result cfi_table_find(const struct cfi_table *table, const struct image *image,
	struct image_cache *cache, uint64_t pc, uint64_t *fde, uint64_t *begin)
{
	uint8_t raw[NEAR_ENTRIES * ENTRY_BYTES];
	uint64_t low = 0, high = table->count; /* the entry is in [low, high), or there is none */

	while (high - low > NEAR_ENTRIES) {
		uint64_t middle = low + (high - low) / 2;

		if (!read_entries(table, image, cache, middle, 1, raw)) {
			return CFI_BROKEN;
		}
		if (address_at(table, raw) <= pc) {
			low = middle;
		} else {
			high = middle;
		}
	}
	if (!read_entries(table, image, cache, low, (size_t)(high - low), raw)) {
		return CFI_BROKEN;
	}
	return find_near(table, raw, (size_t)(high - low), pc, fde, begin);
}
