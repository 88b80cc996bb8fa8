#include "analyzer/symbol/symtab.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>

#define STEP_SYMBOLS  8192
#define SECTION_BYTES (1ull << 30) /* of one symbol table: a sparse file can say anything */

/* A symbol of either class. */
struct elf_symbol {
	uint64_t value, size;
	uint32_t name;
	uint16_t section;
	uint8_t info;
};

static struct elf_symbol symbol_64(const uint8_t *bytes)
{
	Elf64_Sym sym;

	memcpy(&sym, bytes, sizeof(sym));
	return (struct elf_symbol){sym.st_value, sym.st_size, sym.st_name, sym.st_shndx, sym.st_info};
}

static struct elf_symbol symbol_32(const uint8_t *bytes)
{
	Elf32_Sym sym;

	memcpy(&sym, bytes, sizeof(sym));
	return (struct elf_symbol){sym.st_value, sym.st_size, sym.st_name, sym.st_shndx, sym.st_info};
}

/* The code section that holds the symbol. NULL: no code, or more sections than a program has (SHN_XINDEX). */
static const struct elf_section *code_section(
	const struct elf_image *elf, const struct elf_symbol *symbol)
{
	if (symbol->section == SHN_UNDEF || symbol->section >= elf->sections.len) {
		return NULL;
	}
	const struct elf_section *section = &elf->sections.items[symbol->section];

	return section->is_code && symbol->value - section->address < section->bytes ? section : NULL;
}

/* 0: not a symbol for code. */
static uint8_t rank_of(const struct elf_symbol *symbol)
{
	static const uint8_t bindings[16] = {
		[STB_LOCAL] = 1, [STB_WEAK] = 2, [STB_GLOBAL] = 3, [STB_GNU_UNIQUE] = 3};
	uint8_t binding = bindings[symbol->info >> 4];

	switch (symbol->info & 15) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return (uint8_t)(TABLE_RANK_FUNCTION + binding);
	case STT_NOTYPE:
		return (uint8_t)(1 + binding);
	default:
		return 0;
	}
}

static uint64_t saturating_end(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/* "$x", "$d.12" mark where code and data begin. */
static bool is_mapping_symbol(const struct symtab *symtab, const struct elf_symbol *symbol)
{
	uint16_t machine = symtab->elf.machine;

	return (machine == EM_ARM || machine == EM_AARCH64 || machine == EM_RISCV) &&
		   symbol->info == (STB_LOCAL << 4 | STT_NOTYPE);
}

/* What is done with a function: the two walks. False: memory is out. */
typedef bool (*visit_fn)(struct symtab *symtab, const struct table_symbol *symbol);

static bool note_start(struct symtab *symtab, const struct table_symbol *symbol)
{
	wanted_note_start(&symtab->wanted, symbol->start);
	return true;
}

static bool keep(struct symtab *symtab, const struct table_symbol *symbol)
{
	static const enum symtab_kind kinds[2] = {SYMTAB_SYMTAB, SYMTAB_DYNSYM};

	if (symtab->kind == SYMTAB_NONE) {
		symtab->kind = kinds[symbol->strings];
	}
	if (symtab->is_selective && !wanted_matters(&symtab->wanted, symbol->start, symbol->end)) {
		return true;
	}
	return table_add(&symtab->table, symbol);
}

static bool visit_symbol(
	struct symtab *symtab, struct elf_symbol symbol, uint8_t which, visit_fn visit)
{
	uint8_t rank = rank_of(&symbol);

	if (rank == 0 || symbol.name == 0 || is_mapping_symbol(symtab, &symbol)) {
		return true;
	}
	if (symtab->elf.machine == EM_ARM && rank > TABLE_RANK_FUNCTION) {
		symbol.value &= ~1ull; /* the lowest bit tells Thumb code */
	}
	const struct elf_section *section = code_section(&symtab->elf, &symbol);

	if (section == NULL) {
		return true;
	}
	const struct table_symbol item = {
		.start = symbol.value,
		.end = symbol.size == 0 ? 0 : saturating_end(symbol.value, symbol.size),
		.limit = saturating_end(section->address, section->bytes),
		.name = symbol.name,
		.strings = which,
		.rank = rank,
	};

	return visit(symtab, &item);
}

static bool visit_section(struct symtab *symtab, const struct elf_section *section, uint8_t which,
	visit_fn visit, uint8_t *step)
{
	size_t entry = symtab->elf.is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	uint64_t bytes = section->bytes < SECTION_BYTES ? section->bytes : SECTION_BYTES;
	size_t want;

	for (uint64_t done = 0; done < bytes; done += want) {
		want = bytes - done < STEP_SYMBOLS * entry ? (size_t)(bytes - done) : STEP_SYMBOLS * entry;
		size_t len =
			image_source_read(&symtab->elf.source, section->file_offset + done, step, want);

		for (size_t at = 0; at + entry <= len; at += entry) {
			struct elf_symbol symbol =
				symtab->elf.is_64 ? symbol_64(step + at) : symbol_32(step + at);

			if (!visit_symbol(symtab, symbol, which, visit)) {
				return false;
			}
		}
		if (len < want) {
			break;
		}
	}
	return true;
}

/* One walk over .symtab and .dynsym. */
static bool visit_all(struct symtab *symtab, visit_fn visit)
{
	static const uint32_t types[2] = {SHT_SYMTAB, SHT_DYNSYM};
	uint8_t *step = malloc(STEP_SYMBOLS * sizeof(Elf64_Sym));
	bool done = step != NULL;

	for (uint8_t i = 0; done && i < 2; i++) {
		const struct elf_section *section = elf_section(&symtab->elf, types[i]);

		if (section == NULL || section->link >= symtab->elf.sections.len) {
			continue;
		}
		symtab->strings[i] = symtab->elf.sections.items[section->link];
		done = visit_section(symtab, section, i, visit, step);
	}
	free(step);
	return done;
}

/* From places in the file to addresses. */
static bool select_addresses(struct symtab *symtab, const uint64_t *file_offsets, size_t count)
{
	uint64_t *addresses = calloc(count + 1, sizeof(*addresses));
	size_t len = 0;

	if (addresses == NULL) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		len += elf_address(&symtab->elf, file_offsets[i], &addresses[len]);
	}
	symtab->is_selective = true;
	if (!wanted_init(&symtab->wanted, addresses, len) || !visit_all(symtab, note_start)) {
		return false;
	}
	wanted_settle(&symtab->wanted);
	return true;
}

static bool load(struct symtab *symtab, const uint64_t *file_offsets, size_t count)
{
	bool done = (file_offsets == NULL || select_addresses(symtab, file_offsets, count)) &&
				visit_all(symtab, keep) && table_seal(&symtab->table);

	wanted_finish(&symtab->wanted);
	return done;
}

struct symtab *symtab_create(struct image_source source, const uint64_t *file_offsets, size_t count)
{
	struct elf_image elf;

	if (!elf_image_open(&elf, source)) {
		return NULL;
	}
	struct symtab *symtab = calloc(1, sizeof(*symtab));

	if (symtab == NULL) {
		elf_image_close(&elf);
		return NULL;
	}
	symtab->elf = elf;
	if (!load(symtab, file_offsets, count)) {
		symtab_destroy(symtab);
		return NULL;
	}
	return symtab;
}

void symtab_destroy(struct symtab *symtab)
{
	if (symtab == NULL) {
		return;
	}
	table_finish(&symtab->table);
	elf_image_close(&symtab->elf);
	free(symtab);
}

/* Most names are short: the first read is small, and a longer name is read again whole. */
static size_t read_name(void *self, const struct table_symbol *symbol, char *name, size_t room)
{
	const struct symtab *symtab = self;
	const struct elf_section *strings = &symtab->strings[symbol->strings];
	size_t want = room < 256 ? room : 256;

	if (symbol->name >= strings->bytes) {
		return 0;
	}
	uint64_t offset = saturating_end(strings->file_offset, symbol->name);
	uint64_t left = strings->bytes - symbol->name;

	for (;; want = room) {
		size_t len =
			image_source_read(&symtab->elf.source, offset, name, left < want ? (size_t)left : want);
		size_t used = strnlen(name, len);

		if (used < len || want == room) {
			return used;
		}
	}
}

static void destroy(void *self)
{
	symtab_destroy(self);
}

const struct source_ops symtab_source = {"symtab", read_name, destroy};
