#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process/ring.h"

#define MOST  10000
#define BYTES 100000

/* The byte of the stream at an offset, so that every kept byte says where it belongs. */
static char byte_at(uint64_t offset)
{
	return (char)(offset * 31 + (offset >> 8));
}

static void append(struct ring *ring, size_t len)
{
	char bytes[3 * MOST];
	assert_true(len <= sizeof(bytes));
	for (size_t i = 0; i < len; i++) {
		bytes[i] = byte_at(ring->end + i);
	}
	ring_append(ring, bytes, len);
}

static void check(const struct ring *ring, uint64_t start, uint64_t end)
{
	char bytes[MOST + 1];
	assert_int_equal(ring_start(ring), start);
	assert_int_equal(ring->end, end);
	assert_int_equal(ring_read(ring, start, bytes, sizeof(bytes)), end - start);
	for (uint64_t offset = start; offset < end; offset++) {
		assert_int_equal(bytes[offset - start], byte_at(offset));
	}
}

static void keeps_everything_until_it_is_full(void **state)
{
	(void)state;
	struct ring ring;
	ring_init(&ring, MOST);
	check(&ring, 0, 0);
	append(&ring, 0);
	append(&ring, 1);
	check(&ring, 0, 1);
	append(&ring, 4999);
	check(&ring, 0, 5000);
	assert_true(ring.capacity < MOST);
	append(&ring, 5000);
	check(&ring, 0, MOST);
	append(&ring, 1);
	check(&ring, 1, MOST + 1);
	ring_finish(&ring);
}

static void keeps_the_last_bytes_whatever_the_pieces_are(void **state)
{
	(void)state;
	static const size_t pieces[] = {1, 4095, 4096, 4097, 2 * MOST, MOST, MOST - 1, 3 * MOST, 7, 0};
	for (size_t first = 0; first < sizeof(pieces) / sizeof(pieces[0]); first++) {
		struct ring ring;
		uint64_t end = 0;
		ring_init(&ring, MOST);
		for (size_t i = first; end < BYTES; i = (i * 7 + 3) % 10) {
			append(&ring, pieces[i]);
			end += pieces[i];
			check(&ring, end > MOST ? end - MOST : 0, end);
			append(&ring, 333);
			end += 333;
		}
		ring_finish(&ring);
	}
}

static void gives_any_part_of_what_it_keeps(void **state)
{
	(void)state;
	struct ring ring;
	char bytes[100];
	ring_init(&ring, MOST);
	append(&ring, MOST);
	append(&ring, MOST / 2); /* the oldest byte is in the middle */
	for (uint64_t offset = ring_start(&ring); offset <= ring.end; offset += 49) {
		size_t left = (size_t)(ring.end - offset);
		size_t len = ring_read(&ring, offset, bytes, sizeof(bytes));
		assert_int_equal(len, left < sizeof(bytes) ? left : sizeof(bytes));
		for (size_t i = 0; i < len; i++) {
			assert_int_equal(bytes[i], byte_at(offset + i));
		}
	}
	assert_int_equal(ring_read(&ring, ring.end, bytes, sizeof(bytes)), 0);
	ring_finish(&ring);
}

static void shrinks_to_the_newest_and_to_no_more_memory(void **state)
{
	(void)state;
	struct ring ring;
	ring_init(&ring, MOST);
	ring_shrink(&ring, 100);
	check(&ring, 0, 0);
	assert_null(ring.bytes);
	ring_init(&ring, MOST);
	append(&ring, MOST + 77);
	ring_shrink(&ring, 100);
	check(&ring, MOST + 77 - 100, MOST + 77);
	assert_int_equal(ring.capacity, 100);
	append(&ring, 60);
	check(&ring, MOST + 77 - 40, MOST + 77 + 60);
	ring_finish(&ring);
	assert_int_equal(ring_start(&ring), ring.end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_everything_until_it_is_full),
		cmocka_unit_test(keeps_the_last_bytes_whatever_the_pieces_are),
		cmocka_unit_test(gives_any_part_of_what_it_keeps),
		cmocka_unit_test(shrinks_to_the_newest_and_to_no_more_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
