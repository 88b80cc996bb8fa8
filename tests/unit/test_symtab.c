#include "analyzer/symbol/symtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/made_elf.h"

/* A place behind CODE_ADDRESS, and its name. */
struct place {
	uint64_t offset;
	const char *name;
};

/* Up to a place whose name is NULL. */
static void assert_names(struct made_table *table, const struct place *places)
{
	for (; places->name != NULL; places++) {
		assert_string_equal(
			made_name_at(table->symtab, CODE_ADDRESS + places->offset), places->name);
	}
}

static void gives_no_name_to_a_gap_between_sized_symbols(void **state)
{
	struct made_table *table = *state;
	static const struct made_symbol symbols[] = {
		{"two", CODE_ADDRESS + 0x200, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"one", CODE_ADDRESS + 0x100, 0x20, FUNC(STB_GLOBAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};

	made_open_symbols(table, EM_X86_64, SHT_SYMTAB, symbols);
	assert_int_equal(table->symtab->kind, SYMTAB_SYMTAB);
	assert_names(table, (const struct place[]){{0xff, ""}, {0x100, "one"}, {0x11f, "one"},
							{0x120, ""}, {0x200, "two"}, {0x210, ""}, {0, NULL}});
	assert_string_equal(made_name_at(table->symtab, 0), "");
	assert_string_equal(made_name_at(table->symtab, UINT64_MAX), "");
}

static void extends_symbols_without_size_to_the_next_or_the_section_end(void **state)
{
	struct made_table *table = *state;
	static const struct made_symbol symbols[] = {
		{"start", CODE_ADDRESS, 0, LABEL, SECTION_CODE},
		{"sized", CODE_ADDRESS + 0x40, 0x40, FUNC(STB_LOCAL), SECTION_CODE},
		{"label", CODE_ADDRESS + 0x50, 0, LABEL, SECTION_CODE}, /* of "sized" */
		{"alias", CODE_ADDRESS + 0x40, 0, LABEL, SECTION_CODE},
		{"last", CODE_ADDRESS + 0xf00, 0, FUNC(STB_LOCAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};

	made_open_symbols(table, EM_X86_64, SHT_SYMTAB, symbols);
	assert_names(table, (const struct place[]){{0x3f, "start"}, {0x40, "sized"}, {0x50, "sized"},
							{0x7f, "sized"}, {0x80, ""}, {0xfff, "last"}, {0x1000, ""}, {0, NULL}});
}

static void gives_an_address_to_the_innermost_of_nested_symbols(void **state)
{
	struct made_table *table = *state;
	static const struct made_symbol symbols[] = {
		{"outer", CODE_ADDRESS, 0x100, FUNC(STB_GLOBAL), SECTION_CODE},
		{"inner", CODE_ADDRESS + 0x40, 0x20, FUNC(STB_LOCAL), SECTION_CODE},
		{"crossing", CODE_ADDRESS + 0xf0, 0x20, FUNC(STB_LOCAL), SECTION_CODE},
		{"entry", CODE_ADDRESS + 0x80, 0, FUNC(STB_LOCAL), SECTION_CODE},
		{NULL, 0, 0, 0, 0},
	};

	made_open_symbols(table, EM_X86_64, SHT_SYMTAB, symbols);
	assert_names(table,
		(const struct place[]){{0x3f, "outer"}, {0x40, "inner"}, {0x60, "outer"}, {0x80, "entry"},
			{0xf0, "crossing"}, {0x10f, "crossing"}, {0x110, ""}, {0, NULL}});
}

static void chooses_among_aliases_whatever_their_order(void **state)
{
	struct made_table *table = *state;
	static const struct made_symbol aliases[] = {
		{"label", CODE_ADDRESS, 0x10, LABEL, SECTION_CODE},
		{"local", CODE_ADDRESS, 0x10, FUNC(STB_LOCAL), SECTION_CODE},
		{"weak", CODE_ADDRESS, 0x10, FUNC(STB_WEAK), SECTION_CODE},
		{"__global", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"global_b", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
		{"global_a", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
	};

	for (size_t first = 0; first < 6; first++) {
		static const char *const best[] = {
			"label", "local", "weak", "__global", "global_b", "global_a"};

		for (size_t count = 1; count <= 6; count++) {
			struct made_symbol symbols[7] = {{0}};

			for (size_t i = 0; i < count; i++) {
				symbols[i] = aliases[(i + first) % count];
			}
			made_open_symbols(table, EM_X86_64, SHT_SYMTAB, symbols);
			assert_string_equal(made_name_at(table->symtab, CODE_ADDRESS), best[count - 1]);
		}
	}
}

static void leaves_out_what_is_no_code(void **state)
{
	struct made_table *table = *state;
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

	made_open_symbols(table, EM_AARCH64, SHT_SYMTAB, symbols);
	for (uint64_t address = CODE_ADDRESS - 1; address < CODE_ADDRESS + 0x1020; address++) {
		assert_string_equal(made_name_at(table->symtab, address), "");
	}
	assert_string_equal(made_name_at(table->symtab, 0x500000), "");
}

/* Any choice of addresses gives the same names as the whole table. */
static void keeps_what_matters_for_the_wanted_addresses(void **state)
{
	struct made_table *table = *state;
	struct made_symbol symbols[MAX_SYMBOLS] = {{0}};
	static char names[MAX_SYMBOLS][8];
	uint64_t seed = 12345;

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
		made_open_symbols(table, EM_X86_64, SHT_SYMTAB, symbols);
		int fd = made_file(&table->made, sizeof(table->made), FILE_BYTES);
		struct symtab *part = symtab_create((struct image_source){.fd = fd}, offsets, 8);

		assert_non_null(part);
		assert_true(part->table.symbols.len <= table->symtab->table.symbols.len);
		for (size_t i = 0; i < 8; i++) {
			uint64_t address = offsets[i] - CODE_OFFSET + CODE_ADDRESS;
			char name[16];

			snprintf(name, sizeof(name), "%.15s", made_name_at(table->symtab, address));
			assert_string_equal(made_name_at(part, address), name);
		}
		symtab_destroy(part);
	}
}

static void tells_addresses_and_build_id_and_which_table_there_was(void **state)
{
	struct made_table *table = *state;
	static const struct made_symbol symbols[] = {
		{"f", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE}, {NULL, 0, 0, 0, 0}};
	uint64_t address = 0;

	made_open_symbols(table, EM_X86_64, SHT_DYNSYM, symbols);
	assert_int_equal(table->symtab->kind, SYMTAB_DYNSYM);
	assert_true(elf_address(&table->symtab->elf, CODE_OFFSET + 0x123, &address));
	assert_int_equal(address, CODE_ADDRESS + 0x123);
	assert_false(elf_address(&table->symtab->elf, CODE_OFFSET - 1, &address));
	assert_false(elf_address(&table->symtab->elf, CODE_OFFSET + 0x1000, &address));
	assert_int_equal(table->symtab->elf.build_id_bytes, 20);
	assert_memory_equal(table->symtab->elf.build_id, "abcdefghijklmnopqrst", 20);
	made_open(
		table, &(struct made){.header = table->made.header, .segments = {table->made.segments[0]}});
	assert_int_equal(table->symtab->kind, SYMTAB_NONE);
	assert_true(elf_address(&table->symtab->elf, CODE_OFFSET, &address));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, made_set_up, made_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gives_no_name_to_a_gap_between_sized_symbols),
		CASE(extends_symbols_without_size_to_the_next_or_the_section_end),
		CASE(gives_an_address_to_the_innermost_of_nested_symbols),
		CASE(chooses_among_aliases_whatever_their_order),
		CASE(leaves_out_what_is_no_code),
		CASE(keeps_what_matters_for_the_wanted_addresses),
		CASE(tells_addresses_and_build_id_and_which_table_there_was),
	};
	return cmocka_run_group_tests_name("symtab", tests, NULL, NULL);
}
