#include "unwind/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/rule_cache.h"

#define REGISTER(n, o)                                                                             \
	{                                                                                              \
		.kind = CFI_RULE_REGISTER, .number = (n), .offset = (o)                                    \
	}
#define AT(o)                                                                                      \
	{                                                                                              \
		.kind = CFI_RULE_AT, .offset = (o)                                                         \
	}

static void common_rows_fit_in_sixteen_bytes(void **state)
{
	(void)state;
	struct rule_rows rows = {0};
	struct rule rule;
	const struct cfi_row row = {.cfa = REGISTER(6, 16),
		.rules = {[CFI_FP] = AT(-16), [CFI_RA] = AT(-8), [CFI_BASE] = AT(-24)}};

	assert_int_equal(sizeof(rule), 16);
	assert_true(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	assert_int_equal(rule.kind, RULE_FP);
	assert_int_equal(rule.flags, RULE_FP_AT | RULE_BASE_AT);
	assert_int_equal(rule.base_slot, -3);
	assert_int_equal(rule.cfa_offset, 16);
	assert_int_equal(rule.ra_offset, -8);
	assert_int_equal(rule.fp_offset, -16);
	assert_int_equal(rows.rows.len, 0);
	rule_rows_finish(&rows);
}

static void a_leaf_of_aarch64_has_its_return_address_in_lr(void **state)
{
	(void)state;
	struct rule_rows rows = {0};
	struct rule rule;
	const struct cfi_row row = {.cfa = REGISTER(31, 32), .is_ra_in_lr = true, .is_signed = true};

	assert_true(rule_make(&unwind_machine_aarch64, &row, &rows, &rule));
	assert_int_equal(rule.kind, RULE_SP);
	assert_int_equal(rule.flags, RULE_RA_IN_LR | RULE_SIGNED);
	rule_rows_finish(&rows);
}

static void an_undefined_return_address_is_the_end(void **state)
{
	(void)state;
	struct rule_rows rows = {0};
	struct rule rule;
	const struct cfi_row row = {
		.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = {.kind = CFI_RULE_UNDEFINED}}};

	assert_true(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	assert_int_equal(rule.kind, RULE_END);
	rule_rows_finish(&rows);
}

/* Rows that do not fit, each by another of their parts. */
static const struct cfi_row odd_rows[] = {
	{.cfa = REGISTER(10, 0), .rules = {[CFI_RA] = AT(-8)}},
	{.cfa = REGISTER(7, INT64_C(1) << 31), .rules = {[CFI_RA] = AT(-8)}},
	{.cfa = REGISTER(7, 8)}, /* no return address, and no register that has it */
	{.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = REGISTER(5, 0)}},
	{.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = AT(-8), [CFI_SP] = AT(-16)}},
	{.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = AT(-8), [CFI_FP] = {.kind = CFI_RULE_UNDEFINED}}},
	{.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = AT(-8)}, .is_signal = true},
	{.cfa = REGISTER(7, 8), .rules = {[CFI_RA] = AT(-8), [CFI_BASE] = AT(-20)}},
	{.cfa = {.kind = CFI_RULE_EXPRESSION,
		 .expression = (const uint8_t *)"\x77\x08",
		 .expression_len = 2},
		.rules = {[CFI_RA] = AT(-8)}},
	{.cfa = {.kind = CFI_RULE_EXPRESSION,
		 .expression = (const uint8_t *)"\x77\x09",
		 .expression_len = 2},
		.rules = {[CFI_RA] = AT(-8)}},
};

#define ODD_ROWS (sizeof(odd_rows) / sizeof(odd_rows[0]))

static void other_rows_are_kept_whole_and_once(void **state)
{
	(void)state;
	struct rule_rows rows = {0};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ODD_ROWS; i++) {
			struct rule rule;

			assert_true(rule_make(&unwind_machine_x86_64, &odd_rows[i], &rows, &rule));
			assert_int_equal(rule.kind, RULE_ROW);
			assert_int_equal(rule.cfa_offset, i);
		}
	}
	assert_int_equal(rows.rows.len, ODD_ROWS);
	/* the expression is the table's own */
	const struct cfi_rule *cfa = &rows.rows.items[8].row.cfa;
	assert_ptr_not_equal(cfa->expression, odd_rows[8].cfa.expression);
	assert_memory_equal(cfa->expression, "\x77\x08", 2);
	rule_rows_finish(&rows);
}

static void a_full_table_says_so(void **state)
{
	(void)state;
	struct rule_rows rows = {0};
	struct rule rule;
	struct cfi_row row = odd_rows[0];

	for (row.cfa.offset = 0; row.cfa.offset < RULE_ROWS; row.cfa.offset++) {
		assert_true(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	}
	assert_false(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	row.cfa.offset = 7;
	assert_true(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	assert_int_equal(rule.cfa_offset, 7);
	rule_rows_clear(&rows);
	assert_true(rule_make(&unwind_machine_x86_64, &row, &rows, &rule));
	assert_int_equal(rule.cfa_offset, 0);
	rule_rows_finish(&rows);
}

static void the_cache_finds_what_was_put_for_its_state_only(void **state)
{
	(void)state;
	struct rule_cache cache;

	assert_true(rule_cache_init(&cache));
	assert_null(rule_cache_find(&cache, 0, 1));
	for (uint64_t pc = 0; pc < 1000; pc++) {
		const struct rule rule = {.cfa_offset = (int32_t)pc};
		const struct rule *put = rule_cache_put(&cache, 0x401000 + pc, 5, &rule);

		assert_int_equal(put->cfa_offset, pc);
	}
	size_t found = 0;
	for (uint64_t pc = 0; pc < 1000; pc++) {
		const struct rule *rule = rule_cache_find(&cache, 0x401000 + pc, 5);

		found += rule != NULL;
		assert_true(rule == NULL || rule->cfa_offset == (int32_t)pc);
		assert_null(rule_cache_find(&cache, 0x401000 + pc, 6));
	}
	assert_in_range(found, 990, 1000);
	rule_cache_clear(&cache);
	assert_null(rule_cache_find(&cache, 0x401000, 5));
	rule_cache_finish(&cache);
}

static void a_cache_that_is_full_takes_what_is_new(void **state)
{
	(void)state;
	struct rule_cache cache;

	assert_true(rule_cache_init(&cache));
	for (uint64_t pc = 0; pc < 10 * RULE_CACHE_SLOTS; pc++) {
		const struct rule rule = {.cfa_offset = (int32_t)pc};

		rule_cache_put(&cache, pc * 5, 1, &rule);
		assert_int_equal(rule_cache_find(&cache, pc * 5, 1)->cfa_offset, pc);
	}
	rule_cache_finish(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(common_rows_fit_in_sixteen_bytes),
		cmocka_unit_test(a_leaf_of_aarch64_has_its_return_address_in_lr),
		cmocka_unit_test(an_undefined_return_address_is_the_end),
		cmocka_unit_test(other_rows_are_kept_whole_and_once),
		cmocka_unit_test(a_full_table_says_so),
		cmocka_unit_test(the_cache_finds_what_was_put_for_its_state_only),
		cmocka_unit_test(a_cache_that_is_full_takes_what_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
