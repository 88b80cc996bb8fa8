/*
 * ELF images and their symbol tables. The first byte says what the rest is: a file as it is, or the contents of an image
 * whose headers are made here, because hardly any change of a header leaves a file with symbols.
 *
 * A made image has sections: 1 code, 2 .symtab, 3 its names, 4 .dynsym, 5 its names. Each 8 bytes are a symbol.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyzer/symbol/symtab.h"

#define NAME_BYTES   256
#define MAX_SYMBOLS  512
#define CODE_OFFSET  0x1000
#define CODE_ADDRESS 0x401000
#define CODE_BYTES   0x800

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct made {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[6];
	Elf64_Sym symbols[MAX_SYMBOLS];
	char names[NAME_BYTES];
};

static Elf64_Sym make_symbol(const uint8_t *bytes)
{
	return (Elf64_Sym){
		.st_name = bytes[0],
		.st_info = bytes[1],
		.st_shndx = bytes[2] & 8 ? bytes[2] : 1,
		.st_value = CODE_ADDRESS + (bytes[3] | (uint64_t)(bytes[4] & 7) << 8),
		.st_size = bytes[5] == 255 ? UINT64_MAX : bytes[5],
	};
}

static Elf64_Shdr make_section(uint32_t type, size_t offset, size_t bytes, uint32_t link)
{
	return (Elf64_Shdr){.sh_type = type, .sh_offset = offset, .sh_size = bytes, .sh_link = link};
}

static void make_sections(struct made *made, size_t count, size_t dynamic)
{
	size_t symbols = offsetof(struct made, symbols), names = offsetof(struct made, names);
	size_t first = (count - dynamic) * sizeof(Elf64_Sym);
	made->sections[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_offset = CODE_OFFSET,
		.sh_addr = CODE_ADDRESS,
		.sh_size = CODE_BYTES};
	made->sections[2] = make_section(SHT_SYMTAB, symbols, first, 3);
	made->sections[3] = make_section(SHT_STRTAB, names, NAME_BYTES, 0);
	made->sections[4] = make_section(SHT_DYNSYM, symbols + first, dynamic * sizeof(Elf64_Sym), 5);
	made->sections[5] = make_section(SHT_STRTAB, names + NAME_BYTES / 2, NAME_BYTES / 2, 0);
}

static void make_headers(struct made *made, uint16_t machine)
{
	made->header = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct made, segment),
		.e_shoff = offsetof(struct made, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6,
	};
	made->segment = (Elf64_Phdr){.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = CODE_OFFSET,
		.p_vaddr = CODE_ADDRESS,
		.p_filesz = CODE_BYTES,
		.p_memsz = CODE_BYTES};
}

/* Names: every number is one, so that a symbol's name tells st_name. */
static void make_image(struct made *made, const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64, EM_ARM, EM_RISCV};
	size_t count = (size - 1) / 8 < MAX_SYMBOLS ? (size - 1) / 8 : MAX_SYMBOLS;
	*made = (struct made){0};
	make_headers(made, machines[data[0] % 4]);
	make_sections(made, count, count * (data[0] >> 2 & 3) / 4);
	for (size_t i = 0; i < count; i++) {
		made->symbols[i] = make_symbol(data + 1 + 8 * i);
	}
	for (size_t i = 0; i < sizeof(made->names); i++) {
		made->names[i] = (char)(i % 7 == 0 ? 0 : i % 5 == 0 ? '_' : 'a' + i % 26);
	}
}

static struct symtab *open_image(int fd, const uint64_t *offsets, size_t count)
{
	struct image_source source = {.fd = dup(fd)};
	if (source.fd < 0) {
		abort();
	}
	return symtab_create(source, offsets, count);
}

static size_t name_at(struct symtab *symtab, uint64_t address, char *name)
{
	char scratch[NAME_BYTES];
	const struct table_range *range = table_find(&symtab->table, address);
	return range == NULL ? 0
						 : source_best_name(&symtab_source, symtab, &symtab->table, range, name,
							   scratch, NAME_BYTES);
}

static void check_ranges(struct symtab *symtab)
{
	uint64_t end = 0;
	char name[NAME_BYTES];
	for (size_t i = 0; i < symtab->table.ranges.len; i++) {
		const struct table_range *range = &symtab->table.ranges.items[i];
		if (range->start < end || range->end <= range->start ||
			table_find(&symtab->table, range->end - 1) != range) {
			abort();
		}
		end = range->end;
		name_at(symtab, range->start, name);
	}
}

/* Who is asked for a few places only gives the names that the whole table gives. */
static void check_selective(struct symtab *all, int fd, const uint64_t *offsets, size_t count)
{
	struct symtab *some = open_image(fd, offsets, count);
	if (some == NULL || some->kind != all->kind) {
		abort();
	}
	check_ranges(some);
	for (size_t i = 0; i < count; i++) {
		char name[NAME_BYTES], other[NAME_BYTES];
		uint64_t address = 0;
		if (!elf_address(&all->elf, offsets[i], &address)) {
			continue;
		}
		size_t len = name_at(all, address, name);
		if (name_at(some, address, other) != len || memcmp(name, other, len) != 0) {
			fprintf(stderr, "at %llx: \"%.*s\" by the whole table\n", (unsigned long long)address,
				(int)len, name);
			abort();
		}
	}
	symtab_destroy(some);
}

static void check_image(int fd, uint64_t seed)
{
	struct symtab *symtab = open_image(fd, NULL, 0);
	if (symtab == NULL) {
		return;
	}
	uint64_t offsets[5];
	for (size_t i = 0; i < 5; i++) {
		offsets[i] = CODE_OFFSET + (seed >> 11 * i) % CODE_BYTES;
	}
	check_ranges(symtab);
	check_selective(symtab, fd, offsets, 5);
	symtab_destroy(symtab);
}

static void write_image(int fd, const void *bytes, size_t len)
{
	if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, len, 0) != (ssize_t)len) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct made made;
	static int fd = -1;
	uint64_t seed;
	if (size < 1 + sizeof(seed)) {
		return 0;
	}
	if (fd < 0) {
		fd = memfd_create("image", MFD_CLOEXEC);
	}
	memcpy(&seed, data + 1, sizeof(seed));
	if (data[0] & 1) {
		write_image(fd, data + 1 + sizeof(seed), size - 1 - sizeof(seed));
	} else if (size > 2 + sizeof(seed)) {
		make_image(&made, data + 1 + sizeof(seed), size - 1 - sizeof(seed));
		write_image(fd, &made, sizeof(made));
	}
	check_image(fd, seed);
	return 0;
}
