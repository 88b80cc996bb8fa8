#include "support/made_elf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/limits.h"

static void write_header(struct made *made, uint16_t machine)
{
	memcpy(made->header.e_ident, ELFMAG, SELFMAG);
	made->header.e_ident[EI_CLASS] = ELFCLASS64;
	made->header.e_ident[EI_DATA] = ELFDATA2LSB;
	made->header.e_ident[EI_VERSION] = EV_CURRENT;
	made->header.e_type = ET_EXEC;
	made->header.e_machine = machine;
	made->header.e_version = EV_CURRENT;
	made->header.e_ehsize = sizeof(Elf64_Ehdr);
	made->header.e_phoff = offsetof(struct made, segments);
	made->header.e_phentsize = sizeof(Elf64_Phdr);
	made->header.e_phnum = 2;
	made->header.e_shoff = offsetof(struct made, sections);
	made->header.e_shentsize = sizeof(Elf64_Shdr);
	made->header.e_shnum = SECTIONS;
	made->segments[0] =
		(Elf64_Phdr){PT_LOAD, PF_R | PF_X, CODE_OFFSET, CODE_ADDRESS, 0, 0x1000, 0x1000, 0x1000};
	made->segments[1] = (Elf64_Phdr){PT_NOTE, PF_R, offsetof(struct made, note), 0, 0, 36, 36, 4};
	memcpy(made->note, "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0abcdefghijklmnopqrst", 36);
}

static void write_sections(struct made *made, uint32_t type)
{
	made->sections[SECTION_CODE] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = CODE_ADDRESS,
		.sh_offset = CODE_OFFSET,
		.sh_size = 0x1000};
	made->sections[SECTION_SYMBOLS] = (Elf64_Shdr){.sh_type = type,
		.sh_offset = offsetof(struct made, symbols),
		.sh_size = sizeof(made->symbols),
		.sh_link = SECTION_STRINGS,
		.sh_entsize = sizeof(Elf64_Sym)};
	made->sections[SECTION_STRINGS] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct made, strings),
		.sh_size = sizeof(made->strings)};
	made->sections[SECTION_DATA] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_WRITE,
		.sh_addr = 0x500000,
		.sh_size = 0x1000};
}

struct made made_elf(uint16_t machine, uint32_t type, const struct made_symbol *symbols)
{
	struct made made = {0};
	size_t strings = 1;

	write_header(&made, machine);
	write_sections(&made, type);
	for (size_t i = 0; symbols[i].name != NULL; i++) {
		made.symbols[i + 1] = (Elf64_Sym){.st_name = (Elf64_Word)strings,
			.st_info = symbols[i].info,
			.st_shndx = symbols[i].section,
			.st_value = symbols[i].value,
			.st_size = symbols[i].size};
		strcpy(made.strings + strings, symbols[i].name);
		strings += strlen(symbols[i].name) + 1;
	}
	return made;
}

int made_file(const void *bytes, size_t len, size_t file_bytes)
{
	int fd = memfd_create("made", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
	return fd;
}

void made_open(struct made_table *table, const struct made *made)
{
	symtab_destroy(table->symtab);
	table->symtab = symtab_create(
		(struct image_source){.fd = made_file(made, sizeof(*made), FILE_BYTES)}, NULL, 0);
	assert_non_null(table->symtab);
}

void made_open_symbols(
	struct made_table *table, uint16_t machine, uint32_t type, const struct made_symbol *symbols)
{
	table->made = made_elf(machine, type, symbols);
	made_open(table, &table->made);
}

const char *made_name_at(struct symtab *symtab, uint64_t address)
{
	static char name[LIMIT_NAME_BYTES + 1];
	static char scratch[LIMIT_NAME_BYTES];
	const struct table_range *range = table_find(&symtab->table, address);
	size_t len = range == NULL ? 0
							   : source_best_name(&symtab_source, symtab, &symtab->table, range,
									 name, scratch, LIMIT_NAME_BYTES);

	name[len] = '\0';
	return name;
}

int made_set_up(void **state)
{
	*state = calloc(1, sizeof(struct made_table));
	return *state != NULL ? 0 : -1;
}

int made_tear_down(void **state)
{
	struct made_table *table = *state;

	symtab_destroy(table->symtab);
	free(table);
	return 0;
}
