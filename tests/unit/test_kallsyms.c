#include "analyzer/symbol/kallsyms.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct kallsyms *kernel(const char *text)
{
	struct buffer buffer = {0};

	assert_true(buffer_text(&buffer, text));
	struct kallsyms *kallsyms = kallsyms_create(&buffer);

	assert_non_null(kallsyms);
	return kallsyms;
}

static int tear_down(void **state)
{
	kallsyms_destroy(*state);
	return 0;
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
	struct kallsyms *kallsyms = *state = kernel("0000000000000000 A percpu\n"
												"ffffffff81000100 T second\n"
												"ffffffff81000000 t first\n"
												"ffffffff81000180 D data\n"
												"nonsense\n"
												"\n"
												"ffffffffc0000000 t in_module\t[module]\n"
												"ffffffffc0000010 T last");

	assert_false(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0xffffffff81000000, "first");
	assert_kernel_name(kallsyms, 0xffffffff810000ff, "first");
	assert_kernel_name(kallsyms, 0xffffffff81000100, "second");
	assert_kernel_name(kallsyms, 0xffffffffb0000000, "");
	assert_kernel_name(kallsyms, 0xffffffffc000000f, "in_module");
	assert_kernel_name(kallsyms, 0xffffffffc0000010, "last");
	assert_kernel_name(kallsyms, 0x1000, "");
}

static void knows_when_the_kernel_hides_its_addresses(void **state)
{
	struct kallsyms *kallsyms = *state =
		kernel("0000000000000000 T first\n0000000000000000 t second\n");

	assert_true(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0, "");
	kallsyms_destroy(kallsyms);
	kallsyms = *state = kernel("");
	assert_false(kallsyms->is_hidden);
}

static void knows_no_kernel_function_when_nothing_could_be_read(void **state)
{
	struct buffer nothing = {0};
	struct kallsyms *kallsyms = *state = kallsyms_create(&nothing);

	assert_non_null(kallsyms);
	assert_false(kallsyms->is_hidden);
	assert_kernel_name(kallsyms, 0xffffffff81000000, "");
}

#define CASE(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(reads_the_functions_of_the_kernel),
		CASE(knows_when_the_kernel_hides_its_addresses),
		CASE(knows_no_kernel_function_when_nothing_could_be_read),
	};
	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
