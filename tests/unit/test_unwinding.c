#include "capture/unwinding.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "profile/journal.h"

/* The first instruction of a function of the vDSO, where the return address is the first word of the stack, or in a register. */
static uint64_t pc_of_vdso(void)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = vdso != NULL ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
	if (function == NULL && vdso != NULL) {
		function = dlsym(vdso, "__kernel_clock_gettime");
	}
	return (uint64_t)(uintptr_t)function;
}

static int set_up(void **state)
{
	struct error err;
	struct codes *codes = codes_create();
	const struct unwinding_options options = {.codes = codes};
	const struct sampler_mapping vdso = {.start = getauxval(AT_SYSINFO_EHDR), .length = 8192};
	struct unwinding *unwinding = unwinding_create(&options, &err);
	codes_release(codes);
	if (unwinding == NULL) {
		return -1;
	}
	unwinding_map(unwinding, &vdso, 1, JOURNAL_IMAGE_VDSO, -1);
	*state = unwinding;
	return 0;
}

static int tear_down(void **state)
{
	unwinding_destroy(*state);
	return 0;
}

static uint64_t walk(struct unwinding *unwinding, uint64_t pc, bool stack_ended)
{
	static const uint64_t registers[SAMPLER_REGISTERS];
	struct unwinding_stack stack;
	const struct sampler_sample sample = {
		.pc = pc,
		.registers = registers,
		.registers_known = UINT64_MAX,
		.stack = (const uint8_t *)"",
		.stack_ended = stack_ended,
	};
	unwinding_walk(unwinding, &sample, &stack);
	return stack.end;
}

static void walk_whole(struct unwinding *unwinding, size_t times)
{
	for (size_t i = 0; i < times; i++) {
		assert_int_not_equal(walk(unwinding, 16, false), JOURNAL_STACK_COPY);
	}
}

static void walk_cut(struct unwinding *unwinding, size_t times)
{
	for (size_t i = 0; i < times; i++) {
		assert_int_equal(walk(unwinding, pc_of_vdso(), false), JOURNAL_STACK_COPY);
	}
}

static void more_is_wanted_at_once_when_the_first_stacks_are_cut(void **state)
{
	walk_cut(*state, 4);
	assert_false(unwinding_wants_more(*state));
	walk_cut(*state, 1);
	assert_true(unwinding_wants_more(*state));
}

static void what_one_stack_in_a_hundred_lacks_is_not_wanted(void **state)
{
	for (size_t i = 0; i < 500; i++) {
		walk_whole(*state, 99);
		walk_cut(*state, 1);
		assert_false(unwinding_wants_more(*state));
	}
}

static void a_program_whose_stacks_are_long_late_is_not_judged_by_its_past(void **state)
{
	walk_whole(*state, 1000000);
	walk_cut(*state, 12); /* 2 % of at most 512 */
	assert_true(unwinding_wants_more(*state));
	walk_whole(*state, 10000);
	assert_true(unwinding_wants_more(*state));
}

static void what_no_copy_would_have_is_not_wanted(void **state)
{
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(walk(*state, pc_of_vdso(), true), JOURNAL_STACK_COPY);
	}
	assert_false(unwinding_wants_more(*state));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(more_is_wanted_at_once_when_the_first_stacks_are_cut),
		TEST(what_one_stack_in_a_hundred_lacks_is_not_wanted),
		TEST(a_program_whose_stacks_are_long_late_is_not_judged_by_its_past),
		TEST(what_no_copy_would_have_is_not_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
