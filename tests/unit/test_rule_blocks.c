#include "unwind/rule_blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CODE 0x400000

static int setup(void **state)
{
	static struct rule_blocks blocks;

	*state = &blocks;
	return rule_blocks_init(&blocks) ? 0 : -1;
}

static int teardown(void **state)
{
	rule_blocks_finish(*state);
	return 0;
}

/* A row is known by its number. */
static void put(struct rule_blocks *blocks, uint64_t pc, uint64_t begin, uint64_t end, int number)
{
	const struct rule rule = {.kind = RULE_SP, .cfa_offset = number};

	rule_blocks_put(blocks, pc, begin, end, 1, &rule);
}

static int number_at(const struct rule_blocks *blocks, uint64_t pc)
{
	const struct rule *rule = rule_blocks_find(blocks, pc, 1);

	return rule == NULL ? 0 : rule->cfa_offset;
}

/* A function: a byte, three bytes, 300 bytes from the middle of one block into another, two bytes at its end. */
static void every_pc_of_a_row_has_its_rule(void **state)
{
	static const struct {
		uint64_t begin, end;
	} rows[] = {{CODE + 30, CODE + 31}, {CODE + 31, CODE + 34}, {CODE + 34, CODE + 334},
		{CODE + 334, CODE + 336}};

	for (int i = 0; i < 4; i++) {
		put(*state, rows[i].begin, rows[i].begin, rows[i].end, i + 1);
	}
	for (uint64_t pc = CODE; pc < CODE + 400; pc++) {
		int wanted = 0;

		for (int i = 0; i < 4; i++) {
			wanted = rows[i].begin <= pc && pc < rows[i].end ? i + 1 : wanted;
		}
		assert_int_equal(number_at(*state, pc), wanted);
	}
	assert_null(rule_blocks_find(*state, CODE + 100, 2));
	rule_blocks_clear(*state);
	assert_int_equal(number_at(*state, CODE + 100), 0);
}

static void of_a_long_row_what_is_near_is_kept(void **state)
{
	uint64_t begin = CODE + 7, end = CODE + (100 << 20), pc = CODE + (50 << 20);

	put(*state, pc, begin, end, 5);
	assert_int_equal(number_at(*state, pc), 5);
	assert_int_equal(number_at(*state, pc + RULE_BLOCK_SPAN * RULE_BLOCK_BYTES), 5);
	assert_int_equal(number_at(*state, pc - RULE_BLOCK_SPAN * RULE_BLOCK_BYTES), 5);
	assert_int_equal(number_at(*state, pc + (RULE_BLOCK_SPAN + 1) * RULE_BLOCK_BYTES), 0);
	assert_int_equal(number_at(*state, begin), 0);
	put(*state, begin, begin, end, 6);
	assert_int_equal(number_at(*state, begin), 6);
	assert_int_equal(number_at(*state, begin - 1), 0);
	/* addresses at the end of all */
	put(*state, UINT64_MAX - 1, UINT64_MAX - 1, UINT64_MAX, 7);
	assert_int_equal(number_at(*state, UINT64_MAX - 1), 7);
	assert_int_equal(number_at(*state, UINT64_MAX), 0);
}

static void a_full_table_gives_no_wrong_rule(void **state)
{
	size_t known = 0;

	for (int i = 1; i < 4 * RULE_BLOCK_SLOTS; i++) {
		uint64_t pc = CODE + (uint64_t)i * 48;

		put(*state, pc, pc, pc + 48, i);
	}
	for (int i = 1; i < 4 * RULE_BLOCK_SLOTS; i++) {
		int number = number_at(*state, CODE + (uint64_t)i * 48 + 20);

		assert_true(number == 0 || number == i);
		known += number != 0;
	}
	assert_in_range(known, RULE_BLOCK_SLOTS / 4, RULE_BLOCK_SLOTS);
	/* a state that is over makes room */
	put(*state, 0x10, 0x10, 0x20, 1);
	const struct rule rule = {.kind = RULE_FP, .cfa_offset = 9};

	rule_blocks_put(*state, 0x10, 0x10, 0x20, 2, &rule);
	assert_int_equal(rule_blocks_find(*state, 0x1f, 2)->cfa_offset, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_pc_of_a_row_has_its_rule, setup, teardown),
		cmocka_unit_test_setup_teardown(of_a_long_row_what_is_near_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_table_gives_no_wrong_rule, setup, teardown),
	};

	return cmocka_run_group_tests_name("rule_blocks", tests, NULL, NULL);
}
