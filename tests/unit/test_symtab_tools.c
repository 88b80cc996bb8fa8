#include "analyzer/symbol/symtab.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyzer/symbol/symbol.h"
#include "support/made_elf.h"

#define LINE_BYTES 65536
#define PAGE_BYTES 4096

/* nm's lines of one file: "ADDRESS SIZE TYPE NAME". */
struct listing {
	FILE *nm;
	char line[LINE_BYTES];
	unsigned long long address, size;
	char type;
	const char *name;
};

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
		symtab_create((struct image_source){.fd = open(path, O_RDONLY | O_CLOEXEC)}, NULL, 0);
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
		snprintf(name, sizeof(name), "%.1023s", made_name_at(symtab, listing.address));
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
	symbols_destroy(NULL); /* makes this a program with much to name */
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
		(struct image_source){.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)}, NULL, 0);
	char command[512];
	char line[LINE_BYTES] = "";
	size_t compared = 0;

	(void)state;
	assert_int_equal(lives_in_this_program(2), 7);
	assert_non_null(symtab);
	for (size_t i = 0; i < symtab->table.ranges.len; i++) {
		const struct table_range *range = &symtab->table.ranges.items[i];
		char name[512];

		snprintf(name, sizeof(name), "%.511s", made_name_at(symtab, range->start));
		if (strncmp(name, "names_", 6) != 0 && strncmp(name, "made_", 5) != 0 &&
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
	struct image_source source;
	struct error err = {0};
	uint64_t address;

	(void)state;
	if (!image_source_vdso(&source, &err)) {
		print_message("# this process has no vDSO\n");
		skip();
	}
	struct symtab *symtab = symtab_create(source, NULL, 0);
	size_t found = 0;

	assert_non_null(symtab);
	assert_true(elf_address(&symtab->elf, 0, &address));
	for (size_t i = 0; i < symtab->table.ranges.len; i++) {
		found += strstr(made_name_at(symtab, symtab->table.ranges.items[i].start),
					 "clock_gettime") != NULL;
	}
	assert_true(found > 0);
	symtab_destroy(symtab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_every_function_of_this_program_as_nm_does),
		cmocka_unit_test(names_every_function_of_a_stripped_cpp_library_as_nm_does),
		cmocka_unit_test(names_an_address_inside_a_function_as_addr2line_does),
		cmocka_unit_test(finds_the_clock_in_the_code_that_the_kernel_brought),
	};
	return cmocka_run_group_tests_name("symtab_tools", tests, NULL, NULL);
}
