#include "unwind/cfi_entry.h"

#include <string.h>

#define LONG_LENGTH 0xffffffffu

static bool read_section(
	const struct cfi_section *section, struct image_cache *cache, uint64_t at, void *to, size_t len)
{
	if (section->unpacked == NULL) {
		return at <= section->part.bytes && len <= section->part.bytes - at &&
			   image_cache_read(cache, section->image, section->part.offset + at, to, len);
	}
	if (at > section->part.bytes || len > section->part.bytes - at) {
		return false;
	}
	memcpy(to, section->unpacked + at, len);
	return true;
}

/* An entry's length and id. */
struct head {
	uint64_t id_at, body, end; /* offsets in the section */
	uint64_t id;
	bool is_long, is_end;
};

static enum cfi_result read_head(
	const struct cfi_section *section, struct image_cache *cache, uint64_t at, struct head *head)
{
	uint8_t raw[20] = {0};
	uint64_t left = at < section->part.bytes ? section->part.bytes - at : 0;
	size_t len = left < sizeof(raw) ? (size_t)left : sizeof(raw);

	if (left == 0) {
		return CFI_NONE;
	}
	if (!read_section(section, cache, at, raw, len)) {
		return CFI_BROKEN;
	}
	struct bytes in = bytes_of(raw, len);
	uint64_t bytes = bytes_u32(&in);

	head->is_end = bytes == 0;
	head->is_long = bytes == LONG_LENGTH;
	if (head->is_long) {
		bytes = bytes_u64(&in);
	}
	head->id_at = at + in.pos;
	head->end = head->id_at + bytes;
	if (in.bad || bytes > left - in.pos) {
		return CFI_BROKEN;
	}
	if (head->is_end) {
		return CFI_FOUND;
	}
	/* The id grows with the long form in .debug_frame only. */
	head->id = head->is_long && section->is_debug ? bytes_u64(&in) : bytes_u32(&in);
	head->body = at + in.pos;
	return in.bad || head->body > head->end ? CFI_BROKEN : CFI_FOUND;
}

static bool is_cie(const struct cfi_section *section, const struct head *head)
{
	if (!section->is_debug) {
		return head->id == 0;
	}
	return head->id == (head->is_long ? UINT64_MAX : 0xffffffffu);
}

/* .eh_frame counts back from the id itself. */
static uint64_t cie_of(const struct cfi_section *section, const struct head *head)
{
	return section->is_debug ? head->id : head->id_at - head->id;
}

enum cfi_result cfi_entry_place(const struct cfi_section *section, struct image_cache *cache,
	uint64_t at, struct cfi_place *place)
{
	struct head head = {0};
	enum cfi_result result = read_head(section, cache, at, &head);

	if (result == CFI_FOUND) {
		*place = (struct cfi_place){
			.at = at, .next = head.end, .is_cie = head.is_end || is_cie(section, &head)};
		place->cie = place->is_cie ? 0 : cie_of(section, &head);
	}
	return result;
}

/* The body of an entry, read into the scratch. */
static enum cfi_result read_body(const struct cfi_section *section, struct image_cache *cache,
	const struct head *head, uint8_t *to, struct bytes *in)
{
	uint64_t len = head->end - head->body;

	if (len > CFI_ENTRY_BYTES) {
		return CFI_UNKNOWN;
	}
	if (!read_section(section, cache, head->body, to, (size_t)len)) {
		return CFI_BROKEN;
	}
	*in = bytes_of(to, (size_t)len);
	return CFI_FOUND;
}

static struct cfi_code rest_of(struct bytes *in, const struct cfi_bases *bases)
{
	size_t len = bytes_left(in);
	uint64_t address = bases->address + in->pos;

	return (struct cfi_code){bytes_take(in, len), len, address};
}

/* The letters behind "z": each says what the next of the data is. */
static enum cfi_result read_letters(
	struct bytes *data, const char *letters, const struct cfi_bases *bases, struct cfi_cie *cie)
{
	enum cfi_result result = CFI_FOUND;

	for (; *letters != '\0' && result == CFI_FOUND; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = bytes_u8(data);
			break;
		case 'P':
			result = cfi_pointer_skip(data, bytes_u8(data), bases);
			break;
		case 'L':
			bytes_u8(data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* aarch64: return addresses are signed with key B; stripped like those of key A */
		case 'G': /* aarch64: the frame is tagged memory */
			break;
		default:
			result = CFI_UNKNOWN;
		}
	}
	return data->bad ? CFI_BROKEN : result;
}

static enum cfi_result read_augmentation(
	struct bytes *in, const char *text, const struct cfi_bases *bases, struct cfi_cie *cie)
{
	if (text[0] == '\0') {
		return CFI_FOUND;
	}
	if (text[0] != 'z') {
		return CFI_UNKNOWN;
	}
	uint64_t len = bytes_varint(in);

	if (in->bad || len > bytes_left(in)) {
		return CFI_BROKEN;
	}
	struct bytes data = bytes_of(in->data, in->pos + (size_t)len);

	data.pos = in->pos;
	cie->has_data = true;
	bytes_take(in, (size_t)len);
	return read_letters(&data, text + 1, bases, cie);
}

static const char *read_text(struct bytes *in)
{
	const uint8_t *text = in->data + in->pos;
	const uint8_t *end = memchr(text, '\0', bytes_left(in));

	if (end == NULL) {
		in->bad = true;
		return "";
	}
	bytes_take(in, (size_t)(end - text) + 1);
	return (const char *)text;
}

/* Version 4 tells the sizes of addresses and segment selectors; only flat 64-bit code is known. */
static enum cfi_result read_sizes(struct bytes *in, uint8_t version)
{
	if (version == 4 && (bytes_u8(in) != 8 || bytes_u8(in) != 0)) {
		return in->bad ? CFI_BROKEN : CFI_UNKNOWN;
	}
	return CFI_FOUND;
}

static enum cfi_result parse_cie(
	struct bytes *in, const struct cfi_bases *bases, struct cfi_cie *cie)
{
	uint8_t version = bytes_u8(in);
	const char *text = read_text(in);

	if (in->bad) {
		return CFI_BROKEN;
	}
	if (version != 1 && version != 3 && version != 4) {
		return CFI_UNKNOWN;
	}
	enum cfi_result result = read_sizes(in, version);

	if (result != CFI_FOUND) {
		return result;
	}
	cie->code_align = bytes_varint(in);
	cie->data_align = bytes_signed_varint(in);
	cie->ra_register = version == 1 ? bytes_u8(in) : bytes_varint(in);
	result = read_augmentation(in, text, bases, cie);
	if (in->bad) {
		return CFI_BROKEN;
	}
	cie->program = rest_of(in, bases);
	return result;
}

static struct cfi_bases bases_of(const struct cfi_section *section, uint64_t at)
{
	return (struct cfi_bases){.address = section->part.address + at};
}

static enum cfi_result read_cie(const struct cfi_section *section, struct image_cache *cache,
	uint64_t at, uint8_t *to, struct cfi_cie *cie)
{
	struct head head = {0};
	struct bytes in;
	enum cfi_result result = read_head(section, cache, at, &head);

	if (result != CFI_FOUND || head.is_end || !is_cie(section, &head)) {
		return CFI_BROKEN;
	}
	result = read_body(section, cache, &head, to, &in);
	if (result != CFI_FOUND) {
		return result;
	}
	const struct cfi_bases bases = bases_of(section, head.body);

	*cie = (struct cfi_cie){0};
	return parse_cie(&in, &bases, cie);
}

static enum cfi_result parse_fde(
	struct bytes *in, const struct cfi_bases *bases, struct cfi_entry *entry)
{
	uint64_t length = 0;
	enum cfi_result result = cfi_pointer_read(in, entry->cie.encoding, bases, &entry->begin);

	if (result == CFI_FOUND) {
		result = cfi_pointer_number(in, entry->cie.encoding, &length);
	}
	if (result != CFI_FOUND) {
		return result;
	}
	if (length > UINT64_MAX - entry->begin) {
		return CFI_BROKEN;
	}
	entry->end = entry->begin + length;
	if (entry->cie.has_data) {
		uint64_t len = bytes_varint(in);

		if (in->bad || len > bytes_left(in)) {
			return CFI_BROKEN;
		}
		bytes_take(in, (size_t)len);
	}
	entry->program = rest_of(in, bases);
	return CFI_FOUND;
}

enum cfi_result cfi_entry_read(const struct cfi_section *section, struct image_cache *cache,
	uint64_t at, struct cfi_scratch *scratch, struct cfi_entry *entry)
{
	struct head head = {0};
	struct bytes in;
	enum cfi_result result = read_head(section, cache, at, &head);

	if (result != CFI_FOUND || head.is_end || is_cie(section, &head)) {
		return CFI_BROKEN;
	}
	result = read_cie(section, cache, cie_of(section, &head), scratch->cie, &entry->cie);
	if (result == CFI_FOUND) {
		result = read_body(section, cache, &head, scratch->fde, &in);
	}
	if (result != CFI_FOUND) {
		return result;
	}
	const struct cfi_bases bases = bases_of(section, head.body);

	return parse_fde(&in, &bases, entry);
}
