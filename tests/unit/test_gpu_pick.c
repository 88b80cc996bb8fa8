#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/gpu_pick.h"

#define UUID_A "0123456789abcdef0123456789abcdef"
#define UUID_B "fedcba98765432100123456789abcdef"
#define ZERO   "00000000000000000000000000000000"
#define COUNT  (sizeof(devices) / sizeof(devices[0]))

static const struct gpu_pick_device devices[] = {
	{"NVIDIA H200", UUID_A, 0},
	{"NVIDIA H200", UUID_B, 1},
	{"llvmpipe (LLVM 15.0.6, 256 bits)", ZERO, 2},
	{"NVIDIA H200 NVL", ZERO, 5},
};

/* Of each device one character: x where it is chosen. */
static void expect(const char *wish, enum gpu_pick found, const char *marks)
{
	bool chosen[COUNT];
	char text[COUNT + 1] = {0};
	assert_int_equal(gpu_pick(wish, devices, COUNT, chosen), found);
	for (size_t i = 0; i < COUNT; i++) {
		text[i] = chosen[i] ? 'x' : '-';
	}
	assert_string_equal(text, marks);
}

static void a_whole_name_means_all_that_have_it_and_no_longer_one(void **state)
{
	(void)state;
	expect("NVIDIA H200", GPU_PICK_FOUND, "xx--");
	expect("NVIDIA H200 NVL", GPU_PICK_FOUND, "---x");
}

static void a_part_of_a_name_is_taken_in_any_case_when_one_name_has_it(void **state)
{
	(void)state;
	expect("LLVMPIPE", GPU_PICK_FOUND, "--x-");
	expect("nvl", GPU_PICK_FOUND, "---x");
	expect("bits)", GPU_PICK_FOUND, "--x-");
	expect("nvidia h200", GPU_PICK_AMBIGUOUS, "xx-x");
	expect("N", GPU_PICK_AMBIGUOUS, "xx-x");
	expect("llvmpipe (LLVM 15.0.6, 256 bits) ", GPU_PICK_NONE, "----");
	expect("", GPU_PICK_NONE, "----");
	bool chosen[2];
	assert_int_equal(gpu_pick("h200", devices, 2, chosen), GPU_PICK_FOUND);
	assert_true(chosen[0] && chosen[1]);
}

static void digits_are_the_index_that_a_device_says_and_no_part_of_a_name(void **state)
{
	(void)state;
	expect("0", GPU_PICK_FOUND, "x---");
	expect("2", GPU_PICK_FOUND, "--x-");
	expect("05", GPU_PICK_FOUND, "---x");
	expect("3", GPU_PICK_NONE, "----");
	expect("200", GPU_PICK_NONE, "----");
	expect("4294967296", GPU_PICK_NONE, "----");
	expect("-1", GPU_PICK_NONE, "----");
}

static void a_uuid_is_read_with_dashes_and_in_any_case(void **state)
{
	(void)state;
	expect(UUID_B, GPU_PICK_FOUND, "-x--");
	expect("01234567-89AB-CDEF-0123-456789ABCDEF", GPU_PICK_FOUND, "x---");
	expect("11234567-89ab-cdef-0123-456789abcdef", GPU_PICK_NONE, "----");
	/* What is not known is nobody's. */
	expect(ZERO, GPU_PICK_NONE, "----");
	/* One digit less or more is none. */
	expect("0123456789abcdef0123456789abcde", GPU_PICK_NONE, "----");
	expect(UUID_A "0", GPU_PICK_NONE, "----");
}

static void where_there_is_nothing_nothing_is_found(void **state)
{
	bool chosen[1] = {true};
	(void)state;
	assert_int_equal(gpu_pick("0", devices, 0, chosen), GPU_PICK_NONE);
}

static void names_are_told_with_what_else_could_be_said(void **state)
{
	static const bool some[] = {false, true, true, false};
	char text[256], small[64];
	(void)state;
	gpu_pick_names(devices, COUNT, some, text, sizeof(text));
	assert_string_equal(text, "1: NVIDIA H200 (" UUID_B "), 2: llvmpipe (LLVM 15.0.6, 256 bits)");
	gpu_pick_names(devices, COUNT, NULL, small, sizeof(small));
	assert_string_equal(small, "0: NVIDIA H200 (" UUID_A ")…");
	gpu_pick_names(devices, 0, NULL, text, sizeof(text));
	assert_string_equal(text, "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_name_means_all_that_have_it_and_no_longer_one),
		cmocka_unit_test(a_part_of_a_name_is_taken_in_any_case_when_one_name_has_it),
		cmocka_unit_test(digits_are_the_index_that_a_device_says_and_no_part_of_a_name),
		cmocka_unit_test(a_uuid_is_read_with_dashes_and_in_any_case),
		cmocka_unit_test(where_there_is_nothing_nothing_is_found),
		cmocka_unit_test(names_are_told_with_what_else_could_be_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
