#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"

static void varints_are_the_ones_of_the_dwarf_standard(void **state)
{
	(void)state;
	/* DWARF 5, figure 22 */
	static const struct {
		uint64_t value;
		size_t len;
		uint8_t bytes[10];
	} vectors[] = {{2, 1, {2}}, {127, 1, {127}}, {128, 2, {0x80, 1}}, {129, 2, {0x81, 1}},
		{12857, 2, {0xb9, 0x64}},
		{UINT64_MAX, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}}};
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct buffer out = {0};
		assert_true(buffer_varint(&out, vectors[i].value));
		assert_int_equal(out.len, vectors[i].len);
		assert_memory_equal(out.data, vectors[i].bytes, out.len);
		struct bytes in = bytes_of(out.data, out.len);
		assert_int_equal(bytes_varint(&in), vectors[i].value);
		assert_false(in.bad);
		buffer_finish(&out);
	}
	static const uint8_t too_large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
	struct bytes in = bytes_of(too_large, sizeof(too_large));
	bytes_varint(&in);
	assert_true(in.bad);
}

static void signed_varints_are_the_ones_of_the_dwarf_standard(void **state)
{
	(void)state;
	/* DWARF 5, figure 23, and the ends of the range */
	static const struct {
		int64_t value;
		size_t len;
		uint8_t bytes[10];
	} vectors[] = {{2, 1, {2}}, {-2, 1, {0x7e}}, {127, 2, {0xff, 0}}, {-127, 2, {0x81, 0x7f}},
		{128, 2, {0x80, 1}}, {-128, 2, {0x80, 0x7f}}, {129, 2, {0x81, 1}}, {-129, 2, {0xff, 0x7e}},
		{INT64_MAX, 10, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}},
		{INT64_MIN, 10, {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}}};
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct bytes in = bytes_of(vectors[i].bytes, vectors[i].len);
		assert_int_equal(bytes_signed_varint(&in), vectors[i].value);
		assert_false(in.bad);
		assert_int_equal(bytes_left(&in), 0);
		in = bytes_of(vectors[i].bytes, vectors[i].len - 1);
		bytes_signed_varint(&in);
		assert_true(in.bad);
	}
	static const uint8_t too_large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	struct bytes in = bytes_of(too_large, sizeof(too_large));
	bytes_signed_varint(&in);
	assert_true(in.bad);
}

static void zigzag_keeps_every_sign(void **state)
{
	(void)state;
	static const int64_t values[] = {0, -1, 1, -2, INT64_MAX, INT64_MIN};
	static const uint64_t zigzag[] = {0, 1, 2, 3, UINT64_MAX - 1, UINT64_MAX};
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(buffer_zigzag(values[i]), zigzag[i]);
		assert_int_equal(buffer_unzigzag(zigzag[i]), values[i]);
	}
}

static void a_read_beyond_the_end_is_zero_and_stays_bad(void **state)
{
	(void)state;
	static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct bytes in = bytes_of(data, sizeof(data));
	assert_int_equal(bytes_u16(&in), 0x0201);
	assert_int_equal(bytes_u32(&in), 0x06050403);
	assert_int_equal(bytes_u32(&in), 0);
	assert_true(in.bad);
	assert_int_equal(bytes_u8(&in), 0); /* there is one, but the structure is broken */
	struct bytes text = bytes_of("\x05"
								 "abc",
		4);
	assert_int_equal(bytes_text(&text).len, 0);
	assert_true(text.bad);
}

static void a_map_agrees_with_an_array_over_random_work(void **state)
{
	(void)state;
	struct map map = {0};
	static uint64_t model[512];
	memset(model, 0, sizeof(model));
	srand(1);
	for (int i = 0; i < 200000; i++) {
		uint64_t key = (uint64_t)rand() % 512;
		if (rand() % 3 == 0) {
			assert_int_equal(map_remove(&map, key * 64), model[key] != 0);
			model[key] = 0;
		} else {
			model[key] = (uint64_t)i + 1;
			assert_true(map_put(&map, key * 64, model[key]));
		}
		uint64_t probe = (uint64_t)rand() % 512;
		uint64_t *found = map_get(&map, probe * 64);
		assert_int_equal(found != NULL ? *found : 0, model[probe]);
	}
	size_t count = 0;
	for (size_t i = 0; i < 512; i++) {
		count += model[i] != 0;
	}
	assert_int_equal(map.len, count);
	map_finish(&map);
}

static void equal_bytes_are_one_string(void **state)
{
	(void)state;
	struct strings *strings = strings_create();
	bool is_new = false;
	uint32_t nul = strings_intern(strings, "a\0b", 3, &is_new);
	assert_true(is_new);
	assert_int_equal(strings_intern(strings, "a\0b", 3, &is_new), nul);
	assert_false(is_new);
	assert_int_not_equal(strings_intern(strings, "a\0c", 3, NULL), nul);
	uint32_t empty = strings_intern(strings, "", 0, NULL);
	assert_int_not_equal(empty, 0);
	char name[32];
	for (uint32_t i = 0; i < 10000; i++) {
		int len = snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(strings_intern(strings, name, (size_t)len, NULL), 4 + i);
	}
	struct bytes_text text = strings_text(strings, 4 + 77);
	assert_string_equal(text.data, "name 77");
	assert_int_equal(strings_text(strings, nul).len, 3);
	assert_int_equal(strings_text(strings, 0).len, 0);
	assert_int_equal(strings_text(strings, 99999).len, 0);
	assert_int_equal(strings_count(strings), 10003);
	strings_destroy(strings);
	strings_destroy(NULL);
}

static void a_vec_grows_and_keeps_its_items(void **state)
{
	(void)state;
	VEC(int) numbers = {0};
	for (int i = 0; i < 1000; i++) {
		assert_true(VEC_PUSH(&numbers, i));
	}
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(numbers.items[i], i);
	}
	assert_false(VEC_RESERVE(&numbers, SIZE_MAX / 2));
	VEC_FINISH(&numbers);
}

static void a_log_line_cannot_be_forged_into_two(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct log log = {.level = LOG_INFO, .fd = ends[1]};
	log_write(&log, LOG_DEBUG, "test", "not shown");
	log_write(&log, LOG_WARN, "test", "name %s", "a\nerror test: forged\x1b[2J");
	close(ends[1]);
	char line[512] = {0};
	ssize_t len = read(ends[0], line, sizeof(line) - 1);
	close(ends[0]);
	assert_true(len > 0);
	assert_ptr_equal(strchr(line, '\n'), line + len - 1);
	assert_non_null(strstr(line, " warn test: name a?error test: forged?[2J\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints_are_the_ones_of_the_dwarf_standard),
		cmocka_unit_test(signed_varints_are_the_ones_of_the_dwarf_standard),
		cmocka_unit_test(zigzag_keeps_every_sign),
		cmocka_unit_test(a_read_beyond_the_end_is_zero_and_stays_bad),
		cmocka_unit_test(a_map_agrees_with_an_array_over_random_work),
		cmocka_unit_test(equal_bytes_are_one_string),
		cmocka_unit_test(a_vec_grows_and_keeps_its_items),
		cmocka_unit_test(a_log_line_cannot_be_forged_into_two),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
