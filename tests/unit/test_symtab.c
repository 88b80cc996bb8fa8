#include "analyzer/symbol/symtab.h"

#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/symbol/kallsyms.h"
#include "protocol/limits.h"

#define LINE_BYTES 65536

/* A file with one code segment: at offset 0x1000, address 0x401000, 0x1000 bytes. */
#define CODE_OFFSET  0x1000
#define CODE_ADDRESS 0x401000
#define FILE_BYTES   0x2000
#define MAX_SYMBOLS  32

struct made_symbol {
	const char *name;
	uint64_t value, size;
	unsigned char info;
	uint16_t section; /* 1: the code */
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

static void make_header(struct made *made, uint16_t machine)
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

static void make_sections(struct made *made, uint32_t type)
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

static struct made make(uint16_t machine, uint32_t type, const struct made_symbol *symbols)
{
	struct made made = {0};
	size_t strings = 1;

	make_header(&made, machine);
	make_sections(&made, type);
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

static int file_of(const void *bytes, size_t len, size_t file_bytes)
{
	int fd = memfd_create("made", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
	return fd;
}

static struct symtab *open_made(const struct made *made)
{
	struct symtab *symtab =
		symtab_create((struct elf_source){.fd = file_of(made, sizeof(*made), FILE_BYTES)}, NULL, 0);

	assert_non_null(symtab);
	return symtab;
}

/* The name at an address as the linker knows it; "" when there is none. */
static const char *name_at(struct symtab *symtab, uint64_t address)
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

static void gives_no_name_to_a_gap_between_sized_symbols(void **state)
{
	static const struct made_symbol symbols[] = {
		{"two", CODE_ADDRESS + 0x200, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"one", CODE_ADDRESS + 0x100, 0x20, FUNC(STB_GLOBAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};
	struct made made = make(EM_X86_64, SHT_SYMTAB, symbols);
	struct symtab *symtab = open_made(&made);

	(void)state;
	assert_int_equal(symtab->kind, SYMTAB_SYMTAB);
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0xff), "");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x100), "one");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x11f), "one");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x120), "");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x200), "two");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x210), "");
	assert_string_equal(name_at(symtab, 0), "");
	assert_string_equal(name_at(symtab, UINT64_MAX), "");
	symtab_destroy(symtab);
}

static void extends_symbols_without_size_to_the_next_or_the_section_end(void **state)
{
	static const struct made_symbol symbols[] = {
		{"start", CODE_ADDRESS, 0, LABEL, SECTION_CODE},
		{"sized", CODE_ADDRESS + 0x40, 0x40, FUNC(STB_LOCAL), SECTION_CODE},
		{"label", CODE_ADDRESS + 0x50, 0, LABEL, SECTION_CODE}, /* of "sized" */
		{"alias", CODE_ADDRESS + 0x40, 0, LABEL, SECTION_CODE},
		{"last", CODE_ADDRESS + 0xf00, 0, FUNC(STB_LOCAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};
	struct made made = make(EM_X86_64, SHT_SYMTAB, symbols);
	struct symtab *symtab = open_made(&made);

	(void)state;
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x3f), "start");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x40), "sized");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x50), "sized");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x7f), "sized");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x80), "");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0xfff), "last");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x1000), "");
	symtab_destroy(symtab);
}

static void gives_an_address_to_the_innermost_of_nested_symbols(void **state)
{
	static const struct made_symbol symbols[] = {
		{"outer", CODE_ADDRESS, 0x100, FUNC(STB_GLOBAL), SECTION_CODE},
		{"inner", CODE_ADDRESS + 0x40, 0x20, FUNC(STB_LOCAL), SECTION_CODE},
		{"crossing", CODE_ADDRESS + 0xf0, 0x20, FUNC(STB_LOCAL), SECTION_CODE},
		{"entry", CODE_ADDRESS + 0x80, 0, FUNC(STB_LOCAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};
	struct made made = make(EM_X86_64, SHT_SYMTAB, symbols);
	struct symtab *symtab = open_made(&made);

	(void)state;
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x3f), "outer");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x40), "inner");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x60), "outer");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x80), "entry");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0xf0), "crossing");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x10f), "crossing");
	assert_string_equal(name_at(symtab, CODE_ADDRESS + 0x110), "");
	symtab_destroy(symtab);
}

static void chooses_among_aliases_whatever_their_order(void **state)
{
	static const struct made_symbol aliases[] = {
		{"label", CODE_ADDRESS, 0x10, LABEL, SECTION_CODE},
		{"local", CODE_ADDRESS, 0x10, FUNC(STB_LOCAL), SECTION_CODE},
		{"weak", CODE_ADDRESS, 0x10, FUNC(STB_WEAK), SECTION_CODE},
		{"__global", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"global_b", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"global_a", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
	};

	(void)state;
	for (size_t first = 0; first < 6; first++) {
		static const char *const best[] = {
			"label", "local", "weak", "__global", "global_b", "global_a"};

		for (size_t count = 1; count <= 6; count++) {
			struct made_symbol symbols[7] = {{0}};

			for (size_t i = 0; i < count; i++) {
				symbols[i] = aliases[(i + first) % count];
			}
			struct made made = make(EM_X86_64, SHT_SYMTAB, symbols);
			struct symtab *symtab = open_made(&made);

			assert_string_equal(name_at(symtab, CODE_ADDRESS), best[count - 1]);
			symtab_destroy(symtab);
		}
	}
}

static void leaves_out_what_is_no_code(void **state)
{
	static const struct made_symbol symbols[] = {
		{"object", CODE_ADDRESS, 0x10, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), SECTION_CODE},
		{"in_data", 0x500000, 0x10, FUNC(STB_GLOBAL), SECTION_DATA},
		{"undefined", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SHN_UNDEF},
		{"absolute", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SHN_ABS},
		{"no_section", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), 777},
		{"outside", CODE_ADDRESS + 0x1000, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"$x", CODE_ADDRESS, 0, LABEL, SECTION_CODE},
		{"", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};
	struct made made = make(EM_AARCH64, SHT_SYMTAB, symbols);
	struct symtab *symtab = open_made(&made);

	(void)state;
	for (uint64_t address = CODE_ADDRESS - 1; address < CODE_ADDRESS + 0x1020; address++) {
		assert_string_equal(name_at(symtab, address), "");
	}
	assert_string_equal(name_at(symtab, 0x500000), "");
	symtab_destroy(symtab);
}

/* Any choice of addresses gives the same names as the whole table. */
static void keeps_what_matters_for_the_wanted_addresses(void **state)
{
	struct made_symbol symbols[MAX_SYMBOLS] = {{0}};
	static char names[MAX_SYMBOLS][8];
	uint64_t seed = 12345;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		uint64_t offsets[8];

		for (size_t i = 0; i < 20; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			snprintf(names[i], sizeof(names[i]), "f%zu", i);
			symbols[i] = (struct made_symbol){names[i], CODE_ADDRESS + (seed >> 40) % 100,
				(seed >> 20) % 3 == 0 ? 0 : (seed >> 50) % 30,
				(seed >> 60) % 3 == 0 ? LABEL : FUNC(STB_GLOBAL), SECTION_CODE};
		}
		for (size_t i = 0; i < 8; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			offsets[i] = CODE_OFFSET + (seed >> 40) % 120;
		}
		struct made made = make(EM_X86_64, SHT_SYMTAB, symbols);
		struct symtab *whole = open_made(&made);
		struct symtab *part = symtab_create(
			(struct elf_source){.fd = file_of(&made, sizeof(made), FILE_BYTES)}, offsets, 8);

		assert_non_null(part);
		assert_true(part->table.symbols.len <= whole->table.symbols.len);
		for (size_t i = 0; i < 8; i++) {
			uint64_t address = offsets[i] - CODE_OFFSET + CODE_ADDRESS;
			char name[16];

			snprintf(name, sizeof(name), "%.15s", name_at(whole, address));
			assert_string_equal(name_at(part, address), name);
		}
		symtab_destroy(part);
		symtab_destroy(whole);
	}
}

static void tells_addresses_and_build_id_and_which_table_there_was(void **state)
{
	static const struct made_symbol symbols[] = {
		{"f", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE}, {NULL, 0, 0, 0, 0}};
	struct made made = make(EM_X86_64, SHT_DYNSYM, symbols);
	struct symtab *symtab = open_made(&made);
	uint64_t address = 0;

	(void)state;
	assert_int_equal(symtab->kind, SYMTAB_DYNSYM);
	assert_true(elf_address(&symtab->elf, CODE_OFFSET + 0x123, &address));
	assert_int_equal(address, CODE_ADDRESS + 0x123);
	assert_false(elf_address(&symtab->elf, CODE_OFFSET - 1, &address));
	assert_false(elf_address(&symtab->elf, CODE_OFFSET + 0x1000, &address));
	assert_int_equal(symtab->elf.build_id_bytes, 20);
	assert_memory_equal(symtab->elf.build_id, "abcdefghijklmnopqrst", 20);
	symtab_destroy(symtab);
	symtab = open_made(&(struct made){.header = made.header, .segments = {made.segments[0]}});
	assert_int_equal(symtab->kind, SYMTAB_NONE);
	assert_true(elf_address(&symtab->elf, CODE_OFFSET, &address));
	symtab_destroy(symtab);
}

static const struct made_symbol SOUND[] = {
	{"f", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
	{"g", CODE_ADDRESS + 0x20, 0, LABEL, SECTION_CODE},
	{NULL, 0, 0, 0, 0},
};

/* Whatever it says, it is read without harm; the sanitizers watch. */
static void touch(const void *bytes, size_t len, size_t file_bytes)
{
	struct symtab *symtab =
		symtab_create((struct elf_source){.fd = file_of(bytes, len, file_bytes)}, NULL, 0);
	uint64_t address;

	if (symtab == NULL) {
		return;
	}
	for (size_t i = 0; i < symtab->table.ranges.len && i < 64; i++) {
		name_at(symtab, symtab->table.ranges.items[i].start);
	}
	elf_address(&symtab->elf, CODE_OFFSET, &address);
	symtab_destroy(symtab);
}

static void survives_a_file_that_is_cut_anywhere(void **state)
{
	struct made made = make(EM_X86_64, SHT_SYMTAB, SOUND);

	(void)state;
	for (size_t len = 0; len < sizeof(made); len += 3) {
		touch(&made, len, len);
	}
}

static void survives_any_changed_byte(void **state)
{
	struct made made = make(EM_X86_64, SHT_SYMTAB, SOUND);
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};

	(void)state;
	for (size_t at = 0; at < offsetof(struct made, symbols) + 4 * sizeof(Elf64_Sym); at++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			struct made changed = made;

			((unsigned char *)&changed)[at] = values[i];
			touch(&changed, sizeof(changed), FILE_BYTES);
		}
	}
}

static void survives_a_file_that_shrinks_after_it_was_read(void **state)
{
	struct made made = make(EM_X86_64, SHT_SYMTAB, SOUND);
	int fd = file_of(&made, sizeof(made), FILE_BYTES);
	struct symtab *symtab = symtab_create((struct elf_source){.fd = fd}, NULL, 0);

	(void)state;
	assert_non_null(symtab);
	assert_string_equal(name_at(symtab, CODE_ADDRESS), "f");
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_string_equal(name_at(symtab, CODE_ADDRESS), "");
	symtab_destroy(symtab);
}

static void refuses_what_is_no_regular_elf_file(void **state)
{
	int pair[2];

	(void)state;
	assert_null(symtab_create((struct elf_source){.fd = file_of("#!/bin/sh\n", 10, 10)}, NULL, 0));
	assert_null(symtab_create((struct elf_source){.fd = file_of("", 0, 0)}, NULL, 0));
	assert_null(symtab_create((struct elf_source){.fd = file_of("!<arch>\n", 8, 8)}, NULL, 0));
	assert_int_equal(pipe(pair), 0);
	assert_null(symtab_create((struct elf_source){.fd = pair[0]}, NULL, 0));
	close(pair[1]);
}

/* nm's lines of one file: "ADDRESS SIZE TYPE NAME". */
struct listing {
	FILE *nm;
	char line[LINE_BYTES];
	unsigned long long address, size;
	char type;
	const char *name;
};

#define PAGE_BYTES 4096

static bool next_function(struct listing *listing)
{
	while (
		listing->nm != NULL && fgets(listing->line, sizeof(listing->line), listing->nm) != NULL) {
		int at = 0;

		listing->line[strcspn(listing->line, "\n")] = '\0';
		if (sscanf(listing->line, "%llx %llx %c %n", &listing->address, &listing->size,
				&listing->type, &at) == 3 &&
			at > 0 && listing->size > 0 && strchr("TtWwi", listing->type) != NULL &&
			listing->address >=
				PAGE_BYTES) { /* below it: a weak thread-local variable, nm tells no type */
			listing->name = listing->line + at;
			return true;
		}
	}
	return false;
}

/* Is this one of nm's names for the address? Versions aside. */
static bool is_listed(const char *path, const char *options, uint64_t address, const char *name)
{
	static struct listing listing;
	char command[512];
	bool found = false;

	snprintf(command, sizeof(command), "nm -S %s %s 2>/dev/null", options, path);
	listing.nm = popen(command, "r");
	while (next_function(&listing)) {
		listing.line[(size_t)(listing.name - listing.line) + strcspn(listing.name, "@")] = '\0';
		found |= listing.address == address && strcmp(listing.name, name) == 0;
	}
	pclose(listing.nm);
	return found;
}

/* Every function that nm lists has a name from its first to its last byte, and nm's name or an alias of it. */
static size_t compare_with_nm(const char *path, const char *options)
{
	static struct listing listing;
	struct symtab *symtab =
		symtab_create((struct elf_source){.fd = open(path, O_RDONLY | O_CLOEXEC)}, NULL, 0);
	char command[512];
	size_t count = 0;
	size_t aliases = 0;

	assert_non_null(symtab);
	snprintf(command, sizeof(command), "nm -S %s %s 2>/dev/null", options, path);
	listing.nm = popen(command, "r");
	while (next_function(&listing)) {
		char name[1024];
		const struct table_range *first = table_find(&symtab->table, listing.address);

		count++;
		assert_non_null(first);
		snprintf(name, sizeof(name), "%.1023s", name_at(symtab, listing.address));
		name[strcspn(name, "@")] = '\0';
		listing.line[(size_t)(listing.name - listing.line) + strcspn(listing.name, "@")] = '\0';
		if (strcmp(name, listing.name) != 0 && strlen(listing.name) < sizeof(name) - 1 &&
			aliases++ % 100 == 0) { /* asking nm again is slow */
			assert_true(is_listed(path, options, listing.address, name));
		}
		assert_non_null(table_find(&symtab->table, listing.address + listing.size - 1));
	}
	pclose(listing.nm);
	symtab_destroy(symtab);
	return count;
}

static void names_every_function_of_this_program_as_nm_does(void **state)
{
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	assert_true(len > 0);
	path[len] = '\0';
	size_t count = compare_with_nm(path, "");

	if (count == 0) {
		print_message("# nm is missing\n");
		skip();
	}
	assert_true(count > 50);
}

static void names_every_function_of_a_stripped_cpp_library_as_nm_does(void **state)
{
	char path[512] = "";
	FILE *list = popen("ldconfig -p 2>/dev/null | sed -n 's/.*libstdc++\\.so\\.6 .*=> //p'", "r");

	(void)state;
	if (list == NULL || fgets(path, sizeof(path), list) == NULL) {
		path[0] = '\0';
	}
	pclose(list);
	path[strcspn(path, "\n")] = '\0';
	size_t count = path[0] == '\0' ? 0 : compare_with_nm(path, "-D");

	if (count == 0) {
		print_message("# nm or libstdc++.so.6 is missing\n");
		skip();
	}
	assert_true(count > 1000);
}

static int lives_in_this_program(int value)
{
	return value * 3 + 1;
}

/* addr2line reads this program's symbols (and DWARF) by its own means. */
static void names_an_address_inside_a_function_as_addr2line_does(void **state)
{
	struct symtab *symtab = symtab_create(
		(struct elf_source){.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)}, NULL, 0);
	char command[512];
	char line[LINE_BYTES] = "";
	size_t compared = 0;

	(void)state;
	assert_int_equal(lives_in_this_program(2), 7);
	assert_non_null(symtab);
	for (size_t i = 0; i < symtab->table.ranges.len; i++) {
		const struct table_range *range = &symtab->table.ranges.items[i];
		char name[512];

		snprintf(name, sizeof(name), "%.511s", name_at(symtab, range->start));
		if (strncmp(name, "gives_", 6) != 0 && strncmp(name, "survives_", 9) != 0 &&
			strcmp(name, "lives_in_this_program") != 0) {
			continue;
		}
		snprintf(command, sizeof(command), "addr2line -f -e /proc/%d/exe 0x%llx 2>/dev/null",
			(int)getpid(), (unsigned long long)(range->start + (range->end - range->start) / 2));
		FILE *tool = popen(command, "r");

		if (fgets(line, sizeof(line), tool) != NULL) {
			line[strcspn(line, "\n")] = '\0';
			assert_string_equal(line, name);
			compared++;
		}
		pclose(tool);
	}
	symtab_destroy(symtab);
	if (compared == 0) {
		print_message("# addr2line is missing\n");
		skip();
	}
	assert_true(compared >= 5);
}

static void finds_the_clock_in_the_code_that_the_kernel_brought(void **state)
{
	struct elf_source source;
	uint64_t address;

	(void)state;
	if (!elf_vdso(&source)) {
		print_message("# this process has no vDSO\n");
		skip();
	}
	struct symtab *symtab = symtab_create(source, NULL, 0);
	size_t found = 0;

	assert_non_null(symtab);
	assert_true(elf_address(&symtab->elf, 0, &address));
	for (size_t i = 0; i < symtab->table.ranges.len; i++) {
		found +=
			strstr(name_at(symtab, symtab->table.ranges.items[i].start), "clock_gettime") != NULL;
	}
	assert_true(found > 0);
	symtab_destroy(symtab);
}

static struct kallsyms *kernel(const char *text)
{
	struct buffer buffer = {0};

	assert_true(buffer_text(&buffer, text));
	struct kallsyms *kallsyms = kallsyms_create(&buffer);

	assert_non_null(kallsyms);
	return kallsyms;
}

static void assert_kernel_name(struct kallsyms *kallsyms, uint64_t address, const char *expected)
{
	char name[256];
	char scratch[256];
	const struct table_range *range = table_find(&kallsyms->table, address);
	size_t len = range == NULL ? 0
							   : source_best_name(&kallsyms_source, kallsyms, &kallsyms->table,
									 range, name, scratch, sizeof(name) - 1);

	name[len] = '\0';
	assert_string_equal(name, expected);
}

static void reads_the_functions_of_the_kernel(void **state)
{
	struct kallsyms *kallsyms = kernel("0000000000000000 A percpu\n"
									   "ffffffff81000100 T second\n"
									   "ffffffff81000000 t first\n"
									   "ffffffff81000180 D data\n"
									   "nonsense\n"
									   "\n"
									   "ffffffffc0000000 t in_module\t[module]\n"
									   "ffffffffc0000010 T last");

	(void)state;
	assert_false(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0xffffffff81000000, "first");
	assert_kernel_name(kallsyms, 0xffffffff810000ff, "first");
	assert_kernel_name(kallsyms, 0xffffffff81000100, "second");
	assert_kernel_name(kallsyms, 0xffffffffb0000000, "");
	assert_kernel_name(kallsyms, 0xffffffffc000000f, "in_module");
	assert_kernel_name(kallsyms, 0xffffffffc0000010, "last");
	assert_kernel_name(kallsyms, 0x1000, "");
	kallsyms_destroy(kallsyms);
}

static void knows_when_the_kernel_hides_its_addresses(void **state)
{
	struct kallsyms *kallsyms = kernel("0000000000000000 T first\n0000000000000000 t second\n");

	(void)state;
	assert_true(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0, "");
	kallsyms_destroy(kallsyms);
	kallsyms = kernel("");
	assert_false(kallsyms->is_hidden);
	kallsyms_destroy(kallsyms);
}

static void knows_no_kernel_function_when_nothing_could_be_read(void **state)
{
	struct buffer nothing = {0};
	struct kallsyms *kallsyms = kallsyms_create(&nothing);

	(void)state;
	assert_non_null(kallsyms);
	assert_false(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0xffffffff81000000, "");
	kallsyms_destroy(kallsyms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_no_name_to_a_gap_between_sized_symbols),
		cmocka_unit_test(extends_symbols_without_size_to_the_next_or_the_section_end),
		cmocka_unit_test(gives_an_address_to_the_innermost_of_nested_symbols),
		cmocka_unit_test(chooses_among_aliases_whatever_their_order),
		cmocka_unit_test(leaves_out_what_is_no_code),
		cmocka_unit_test(keeps_what_matters_for_the_wanted_addresses),
		cmocka_unit_test(tells_addresses_and_build_id_and_which_table_there_was),
		cmocka_unit_test(survives_a_file_that_is_cut_anywhere),
		cmocka_unit_test(survives_any_changed_byte),
		cmocka_unit_test(survives_a_file_that_shrinks_after_it_was_read),
		cmocka_unit_test(refuses_what_is_no_regular_elf_file),
		cmocka_unit_test(names_every_function_of_this_program_as_nm_does),
		cmocka_unit_test(names_every_function_of_a_stripped_cpp_library_as_nm_does),
		cmocka_unit_test(names_an_address_inside_a_function_as_addr2line_does),
		cmocka_unit_test(finds_the_clock_in_the_code_that_the_kernel_brought),
		cmocka_unit_test(reads_the_functions_of_the_kernel),
		cmocka_unit_test(knows_when_the_kernel_hides_its_addresses),
		cmocka_unit_test(knows_no_kernel_function_when_nothing_could_be_read),
	};

	return cmocka_run_group_tests_name("symtab", tests, NULL, NULL);
}
