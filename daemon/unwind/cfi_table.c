#include "unwind/cfi_table.h"

#include "base/bytes.h"

#define TABLE_ENCODING (CFI_POINTER_DATAREL | CFI_POINTER_SDATA4)
#define ENTRY_BYTES    8
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

/* Reads an entry: two addresses. */
static bool read_entry(const struct cfi_table *table, const struct image *image,
	struct image_cache *cache, uint64_t index, uint64_t *begin, uint64_t *fde)
{
	uint8_t raw[ENTRY_BYTES];

	if (!image_cache_read(cache, image,
			table->part.offset + table->entries_at + index * ENTRY_BYTES, raw, sizeof(raw))) {
		return false;
	}
	struct bytes in = bytes_of(raw, sizeof(raw));

	*begin = table->part.address + (uint64_t)(int32_t)bytes_u32(&in);
	*fde = table->part.address + (uint64_t)(int32_t)bytes_u32(&in);
	return true;
}

enum cfi_result cfi_table_find(const struct cfi_table *table, const struct image *image,
	struct image_cache *cache, uint64_t pc, uint64_t *fde, uint64_t *begin)
{
	uint64_t low = 0,
			 high =
				 table
					 ->count; /* the entry is the last of [low, high) that begins at or before pc */

	while (low < high) {
		uint64_t middle = low + (high - low) / 2, first, address;

		if (!read_entry(table, image, cache, middle, &first, &address)) {
			return CFI_BROKEN;
		}
		if (first <= pc) {
			*begin = first;
			*fde = address;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low == 0 ? CFI_NONE : CFI_FOUND;
}
