#include "unwind/stub.h"

#include <string.h>

#define ENTRY_BYTES 16 /* of a linkage table's, which are as many bytes apart */

struct entry {
	enum image_machine machine;
	uint8_t code[ENTRY_BYTES], mask[ENTRY_BYTES];
	uint8_t pushed; /* from this byte on there is a word more on the stack */
	uint8_t flags;  /* enum rule_flags */
};

#define SHORT_ENTRY_BYTES                                                                          \
	8 /* of static programs' tables, for functions that are chosen at the start: jmp *there(%rip); xchg %ax,%ax */

#define ANY 0, 0, 0, 0
#define ALL 0xff, 0xff, 0xff, 0xff

static const struct entry entries[] = {
	/* lld, and GNU ld without its rows: jmp *there(%rip); push $number; jmp table */
	{IMAGE_MACHINE_X86_64, {0xff, 0x25, ANY, 0x68, ANY, 0xe9, ANY},
		{0xff, 0xff, ANY, 0xff, ANY, 0xff, ANY}, 11, 0},
	/* mold: endbr64; mov $number,%r11d; jmp *there(%rip) */
	{IMAGE_MACHINE_X86_64, {0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, ANY, 0xff, 0x25, ANY},
		{ALL, 0xff, 0xff, ANY, 0xff, 0xff, ANY}, ENTRY_BYTES, 0},
	/* GNU ld and mold, for functions that are also known by address: endbr64; jmp *there(%rip); padding */
	{IMAGE_MACHINE_X86_64, {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, ANY}, {ALL, 0xff, 0xff, ANY},
		ENTRY_BYTES, 0},
	/* adrp x16, page; ldr x17, [x16, n]; add x16, x16, n; br x17 */
	{IMAGE_MACHINE_AARCH64,
		{0x10, 0, 0, 0x90, 0x11, 0x02, 0x40, 0xf9, 0x10, 0x02, 0, 0x91, 0x20, 0x02, 0x1f, 0xd6},
		{0x1f, 0, 0, 0x9f, 0xff, 0x03, 0xc0, 0xff, 0xff, 0x03, 0xc0, 0xff, ALL}, ENTRY_BYTES,
		RULE_RA_IN_LR},
};

static bool matches(const struct entry *entry, const uint8_t *code)
{
	for (size_t i = 0; i < ENTRY_BYTES; i++) {
		if ((code[i] & entry->mask[i]) != entry->code[i]) {
			return false;
		}
	}
	return true;
}

static bool read_code(struct image_cache *cache, const struct image *image, uint64_t address,
	uint8_t *code, size_t len)
{
	uint64_t offset, left;

	return image_offset(image, address, &offset, &left) &&
		   image_cache_read(cache, image, offset, code, len);
}

static bool is_trampoline(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address)
{
	uint8_t code[UNWIND_SIGNAL_CODE_BYTES];

	return read_code(cache, image, address, code, machine->signal_code_bytes) &&
		   memcmp(code, machine->signal_code, machine->signal_code_bytes) == 0;
}

static struct rule entry_rule(const struct entry *entry, uint64_t at)
{
	int32_t word = sizeof(uint64_t);
	bool is_in_lr = (entry->flags & RULE_RA_IN_LR) != 0;

	return (struct rule){.kind = RULE_SP,
		.flags = entry->flags,
		.cfa_offset = is_in_lr              ? 0
					  : at >= entry->pushed ? 2 * word
											: word,
		.ra_offset = -word};
}

static bool is_short_entry(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address)
{
	uint8_t code[SHORT_ENTRY_BYTES];

	return machine->image == IMAGE_MACHINE_X86_64 && address % SHORT_ENTRY_BYTES == 0 &&
		   read_code(cache, image, address, code, sizeof(code)) && code[0] == 0xff &&
		   code[1] == 0x25 && code[6] == 0x66 && code[7] == 0x90;
}

bool stub_find(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address, bool is_exact, struct rule *rule)
{
	uint8_t code[ENTRY_BYTES];
	uint64_t at = address % ENTRY_BYTES;

	if (is_trampoline(machine, cache, image, address)) {
		*rule = (struct rule){.kind = RULE_SIGNAL};
		return true;
	}
	if (is_exact && is_short_entry(machine, cache, image, address)) {
		*rule = (struct rule){.kind = RULE_SP, .cfa_offset = 8, .ra_offset = -8};
		return true;
	}
	if (!is_exact || !read_code(cache, image, address - at, code, sizeof(code))) {
		return false;
	}
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (entries[i].machine == machine->image && matches(&entries[i], code)) {
			*rule = entry_rule(&entries[i], at);
			return true;
		}
	}
	return false;
}

#define CALL_BYTES 7 /* the longest without prefixes */

/* Bytes of an instruction of one byte with this ModR/M and what follows (Intel SDM 2.1.5). */
static size_t with_operand(uint8_t modrm, uint8_t sib)
{
	unsigned mode = modrm >> 6, base = modrm & 7;
	size_t bytes = 2;

	if (mode == 3) {
		return bytes;
	}
	bytes += base == 4;
	if (mode == 0) {
		return bytes + (base == 5 || (base == 4 && (sib & 7) == 5) ? 4 : 0);
	}
	return bytes + (mode == 1 ? 1 : 4);
}

/* code[CALL_BYTES] is what stands before an address. */
static bool ends_with_call_x86_64(const uint8_t *code)
{
	if (code[CALL_BYTES - 5] == 0xe8) {
		return true;
	}
	for (size_t len = 2; len <= CALL_BYTES; len++) {
		const uint8_t *at = code + CALL_BYTES - len;

		if (at[0] == 0xff && (at[1] >> 3 & 7) == 2 &&
			with_operand(at[1], len > 2 ? at[2] : 0) == len) {
			return true;
		}
	}
	return false;
}

static bool ends_with_call_aarch64(const uint8_t *code)
{
	const uint8_t *at = code + CALL_BYTES - 4;
	uint32_t word = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;

	return (word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000 ||
		   (word & 0xfefff800) == 0xd63f0800;
}

enum stub_call stub_is_call(const struct unwind_machine *machine, struct image_cache *cache,
	const struct image *image, uint64_t address)
{
	uint8_t code[CALL_BYTES];

	if (is_trampoline(machine, cache, image, address)) {
		return STUB_CALL;
	}
	if (!read_code(cache, image, address - CALL_BYTES, code, sizeof(code))) {
		return STUB_UNKNOWN;
	}
	bool is_call = machine->image == IMAGE_MACHINE_X86_64 ? ends_with_call_x86_64(code)
														  : ends_with_call_aarch64(code);
	return is_call ? STUB_CALL : STUB_OTHER;
}
