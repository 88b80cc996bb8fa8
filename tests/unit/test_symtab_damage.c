#include "analyzer/symbol/symtab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/made_elf.h"

static const struct made_symbol sound[] = {
	{"f", CODE_ADDRESS, 0x10, FUNC(STB_GLOBAL), SECTION_CODE},
	{"g", CODE_ADDRESS + 0x20, 0, LABEL, SECTION_CODE},
	{NULL, 0, 0, 0, 0},
};

/* Whatever it says, it is read without harm; the sanitizers watch. */
static void touch(const void *bytes, size_t len, size_t file_bytes)
{
	struct symtab *symtab =
		symtab_create((struct image_source){.fd = made_file(bytes, len, file_bytes)}, NULL, 0);
	uint64_t address;

	if (symtab == NULL) {
		return;
	}
	for (size_t i = 0; i < symtab->table.ranges.len && i < 64; i++) {
		made_name_at(symtab, symtab->table.ranges.items[i].start);
	}
	elf_address(&symtab->elf, CODE_OFFSET, &address);
	symtab_destroy(symtab);
}

static void survives_a_file_that_is_cut_anywhere(void **state)
{
	(void)state;
	struct made made = made_elf(EM_X86_64, SHT_SYMTAB, sound);

	for (size_t len = 0; len < sizeof(made); len += 3) {
		touch(&made, len, len);
	}
}

static void survives_any_changed_byte(void **state)
{
	(void)state;
	struct made made = made_elf(EM_X86_64, SHT_SYMTAB, sound);
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};

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
	(void)state;
	struct made made = made_elf(EM_X86_64, SHT_SYMTAB, sound);
	int fd = made_file(&made, sizeof(made), FILE_BYTES);
	struct symtab *symtab = symtab_create((struct image_source){.fd = fd}, NULL, 0);

	assert_non_null(symtab);
	assert_string_equal(made_name_at(symtab, CODE_ADDRESS), "f");
	assert_int_equal(ftruncate(fd, 64), 0);
	assert_string_equal(made_name_at(symtab, CODE_ADDRESS), "");
	symtab_destroy(symtab);
}

static void refuses_what_is_no_regular_elf_file(void **state)
{
	(void)state;
	int pair[2];

	assert_null(
		symtab_create((struct image_source){.fd = made_file("#!/bin/sh\n", 10, 10)}, NULL, 0));
	assert_null(symtab_create((struct image_source){.fd = made_file("", 0, 0)}, NULL, 0));
	assert_null(symtab_create((struct image_source){.fd = made_file("!<arch>\n", 8, 8)}, NULL, 0));
	assert_int_equal(pipe(pair), 0);
	assert_null(symtab_create((struct image_source){.fd = pair[0]}, NULL, 0));
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_a_file_that_is_cut_anywhere),
		cmocka_unit_test(survives_any_changed_byte),
		cmocka_unit_test(survives_a_file_that_shrinks_after_it_was_read),
		cmocka_unit_test(refuses_what_is_no_regular_elf_file),
	};
	return cmocka_run_group_tests_name("symtab_damage", tests, NULL, NULL);
}
