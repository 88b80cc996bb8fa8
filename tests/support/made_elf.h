#ifndef TESTS_SUPPORT_MADE_ELF_H
#define TESTS_SUPPORT_MADE_ELF_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/symbol/symtab.h"

/*
 * ELF files made of bytes, and their table of symbols. One code segment: at offset 0x1000, address 0x401000, 0x1000 bytes. Whatever
 * goes wrong fails the test.
 */
#define CODE_OFFSET  0x1000
#define CODE_ADDRESS 0x401000
#define FILE_BYTES   0x2000
#define MAX_SYMBOLS  32

struct made_symbol {
	const char *name;
	uint64_t value, size;
	unsigned char info;
	uint16_t section; /* SECTION_CODE */
};

enum { SECTION_NULL, SECTION_CODE, SECTION_SYMBOLS, SECTION_STRINGS, SECTION_DATA, SECTIONS };

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Shdr sections[SECTIONS];
	Elf64_Sym symbols[MAX_SYMBOLS];
	char strings[1024];
	unsigned char note[36];
};

#define FUNC(binding) ELF64_ST_INFO(binding, STT_FUNC)
#define LABEL         ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE)

/* What a case looks at: zero is nothing. */
struct made_table {
	struct made made;
	struct symtab *symtab;
};

/* cmocka's. */
int made_set_up(void **state);
int made_tear_down(void **state);

/* type: of the section of symbols. symbols end with one without a name. */
struct made made_elf(uint16_t machine, uint32_t type, const struct made_symbol *symbols);
/* A file of those bytes, made longer up to file_bytes. Whoever calls owns it. */
int made_file(const void *bytes, size_t len, size_t file_bytes);
/* Its symbols, in place of what the table held before. */
void made_open(struct made_table *table, const struct made *made);
void made_open_symbols(
	struct made_table *table, uint16_t machine, uint32_t type, const struct made_symbol *symbols);

/* The name at an address as the linker knows it; "" when there is none. Valid until the next call. */
const char *made_name_at(struct symtab *symtab, uint64_t address);

#endif
