#include "unwind/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include <cmocka.h>

#include "support/made_image.h"

static uint8_t bytes[MADE_BYTES];

struct fixture {
	struct made_image made;
	struct cfi_reader reader;
	struct cfi *cfi;
	struct cfi_row row;
};

static struct fixture *setup(void)
{
	static struct fixture fixture;

	fixture = (struct fixture){0};
	assert_true(cfi_reader_init(&fixture.reader));
	return &fixture;
}

static void teardown(struct fixture *fixture)
{
	cfi_release(fixture->cfi);
	cfi_reader_finish(&fixture->reader);
	made_image_finish(&fixture->made);
}

static void open_made(struct fixture *fixture)
{
	struct error err = {0};

	made_image_write(&fixture->made, bytes);
	struct image *image = image_open_memory(bytes, sizeof(bytes), &err);

	assert_non_null(image);
	cfi_release(fixture->cfi);
	fixture->cfi = cfi_create(image, &fixture->reader);
	image_release(image);
	assert_non_null(fixture->cfi);
}

static enum cfi_result ask(struct fixture *fixture, uint64_t pc)
{
	return cfi_row_at(fixture->cfi, &fixture->reader, MADE_CODE + pc, &fixture->row, NULL);
}

static void expect_offset(struct fixture *fixture, uint64_t pc, int64_t offset)
{
	assert_int_equal(ask(fixture, pc), CFI_FOUND);
	assert_int_equal(fixture->row.cfa.offset, offset);
}

#define FUNCTIONS 20

/* Functions of 16 bytes with a gap of 16 behind each; from its fifth byte function i has CFA = sp + 4 * (i + 2). */
static void make_functions(struct fixture *fixture, uint64_t (*entries)[2])
{
	size_t cie = made_plain_cie(&fixture->made.frames);

	for (size_t i = 0; i < FUNCTIONS; i++) {
		uint64_t begin = MADE_CODE + 32 * i;

		entries[i][0] = begin;
		entries[i][1] = made_fde(&fixture->made.frames, cie, begin, 16,
			MADE_PROGRAM(0x44, 0x0e, (uint8_t)(4 * (i + 2))));
	}
}

static void check_functions(struct fixture *fixture)
{
	assert_int_equal(
		cfi_row_at(fixture->cfi, &fixture->reader, MADE_CODE - 1, &fixture->row, NULL), CFI_NONE);
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		expect_offset(fixture, 32 * i, 8);
		expect_offset(fixture, 32 * i + 3, 8);
		expect_offset(fixture, 32 * i + 4, (int64_t)(4 * (i + 2)));
		expect_offset(fixture, 32 * i + 15, (int64_t)(4 * (i + 2)));
		assert_int_equal(ask(fixture, 32 * i + 16), CFI_NONE);
	}
	assert_int_equal(ask(fixture, 32 * FUNCTIONS + 1000), CFI_NONE);
}

static void rows_are_found_with_and_without_table_and_sections(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	uint64_t entries[FUNCTIONS][2];

	make_functions(fixture, entries);
	open_made(fixture);
	check_functions(fixture);
	made_header(&fixture->made.header, entries, FUNCTIONS);
	open_made(fixture);
	check_functions(fixture);
	fixture->made.has_no_sections = true;
	open_made(fixture);
	check_functions(fixture);
	/* a table of a form that nobody writes: an index is made, where .eh_frame is told by the pointer */
	fixture->made.header.data[3] = 0x3c;
	open_made(fixture);
	check_functions(fixture);
	teardown(fixture);
}

static void a_table_that_lies_is_not_believed(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	uint64_t entries[FUNCTIONS][2];

	make_functions(fixture, entries);
	entries[3][1] = entries[4][1];
	entries[5][1] = 0; /* a CIE */
	entries[6][1] = 0x100000;
	made_header(&fixture->made.header, entries, FUNCTIONS);
	open_made(fixture);
	assert_int_equal(ask(fixture, 32 * 3), CFI_BROKEN);
	assert_int_equal(ask(fixture, 32 * 5), CFI_BROKEN);
	assert_int_equal(ask(fixture, 32 * 6), CFI_BROKEN);
	expect_offset(fixture, 32 * 4 + 4, 24);
	/* more entries than the part has room for */
	fixture->made.header.data[9] = 1;
	open_made(fixture);
	expect_offset(fixture, 32 * 3 + 4, 20);
	teardown(fixture);
}

static void debug_frame_speaks_where_eh_frame_is_silent(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	uint64_t entries[FUNCTIONS][2];

	make_functions(fixture, entries);
	made_header(&fixture->made.header, entries, FUNCTIONS);
	struct buffer *debug = &fixture->made.debug_frames;
	size_t cie = made_cie(debug, true, "", "", 0, MADE_PROGRAM(0x0c, 7, 8, 0x90, 1));

	made_debug_fde(debug, cie, MADE_CODE, 16, MADE_PROGRAM(0x0e, 80));
	made_debug_fde(debug, cie, MADE_CODE + 0x1000, 16, MADE_PROGRAM(0x0e, 88));
	made_debug_fde(debug, cie, 0, 0x3000, MADE_PROGRAM(0x0e, 96)); /* thrown away by the linker */
	open_made(fixture);
	expect_offset(fixture, 0, 8);
	expect_offset(fixture, 0x1000, 88);
	assert_int_equal(
		cfi_row_at(fixture->cfi, &fixture->reader, 0x2000, &fixture->row, NULL), CFI_NONE);
	teardown(fixture);
}

static void debug_frame_may_be_packed(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	struct buffer plain = {0}, *debug = &fixture->made.debug_frames;
	uint8_t packed[1024];
	uLongf len = sizeof(packed);
	size_t cie = made_cie(&plain, true, "", "", 0, MADE_PROGRAM(0x0c, 7, 8, 0x90, 1));

	made_debug_fde(&plain, cie, MADE_CODE + 0x1000, 16, MADE_PROGRAM(0x0e, 88));
	assert_int_equal(compress(packed, &len, plain.data, plain.len), Z_OK);
	const Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = plain.len};

	buffer_append(debug, &header, sizeof(header));
	buffer_append(debug, packed, len);
	fixture->made.debug_flags = SHF_COMPRESSED;
	open_made(fixture);
	expect_offset(fixture, 0x1000, 88);
	debug->data[debug->len - 1] ^= 1; /* zlib's checksum */
	open_made(fixture);
	assert_int_equal(ask(fixture, 0x1000), CFI_NONE);
	buffer_finish(&plain);
	teardown(fixture);
}

/* One FDE of a CIE with these letters; data[0] stands for the encoding where there is an R. */
static enum cfi_result ask_letters(
	struct fixture *fixture, const char *letters, const char *data, size_t len)
{
	fixture->made.frames.len = 0;
	size_t cie = made_cie(
		&fixture->made.frames, false, letters, data, len, MADE_PROGRAM(0x0c, 7, 8, 0x80 | 16, 1));

	const uint64_t entries[][2] = {
		{MADE_CODE, made_fde(&fixture->made.frames, cie, MADE_CODE, 16, MADE_PROGRAM(0))}};

	fixture->made.header.len = 0;
	made_header(&fixture->made.header, entries, 1);
	open_made(fixture);
	return ask(fixture, 0);
}

static void augmentations_are_known_or_unknown(void **state)
{
	(void)state;
	struct fixture *fixture = setup();

	assert_int_equal(ask_letters(fixture, "zR", "\x1b", 1), CFI_FOUND);
	assert_false(fixture->row.is_signal);
	assert_int_equal(ask_letters(fixture, "zRS", "\x1b", 1), CFI_FOUND);
	assert_true(fixture->row.is_signal);
	/* a personality (indirect, pcrel, sdata4), an LSDA encoding, the addresses' */
	assert_int_equal(ask_letters(fixture, "zPLR", "\x9b\1\2\3\4\x1b\x1b", 7), CFI_FOUND);
	assert_int_equal(ask_letters(fixture, "zPLR", "\xff\xff\x1b", 3), CFI_FOUND);
	assert_int_equal(ask_letters(fixture, "zRB", "\x1b", 1), CFI_FOUND);
	assert_int_equal(ask_letters(fixture, "zRG", "\x1b", 1), CFI_FOUND);
	assert_int_equal(ask_letters(fixture, "zRx", "\x1b", 1), CFI_UNKNOWN);
	assert_int_equal(ask_letters(fixture, "zPR", "\x9b\1", 2), CFI_BROKEN);
	assert_int_equal(ask_letters(fixture, "zP", "\x0f\1", 2), CFI_UNKNOWN);
	assert_int_equal(ask_letters(fixture, "armcc+", "", 0), CFI_UNKNOWN);
	/* addresses relative to text, to a function, indirect */
	assert_int_equal(ask_letters(fixture, "zR", "\x2b", 1), CFI_UNKNOWN);
	assert_int_equal(ask_letters(fixture, "zR", "\x4b", 1), CFI_UNKNOWN);
	assert_int_equal(ask_letters(fixture, "zR", "\x9b", 1), CFI_UNKNOWN);
	teardown(fixture);
}

/* Pointers from the bytes of a place at 0x1001, relative to 0x5000. */
struct pointer_case {
	uint8_t encoding, bytes[16];
	enum cfi_result result;
	uint64_t value;
	size_t read;
};

static void pointers_are_read_as_they_are_encoded(void **state)
{
	(void)state;
	static const struct pointer_case cases[] = {
		{0x00, {1, 2, 3, 4, 5, 6, 7, 8}, CFI_FOUND, 0x0807060504030201, 8},
		{0x01, {0x80, 1}, CFI_FOUND, 128, 2},
		{0x02, {0xfe, 0xff}, CFI_FOUND, 0xfffe, 2},
		{0x03, {0xfe, 0xff, 0xff, 0xff}, CFI_FOUND, 0xfffffffe, 4},
		{0x04, {1, 0, 0, 0, 0, 0, 0, 0x80}, CFI_FOUND, 0x8000000000000001, 8},
		{0x09, {0x7e}, CFI_FOUND, (uint64_t)-2, 1},
		{0x0a, {0xfe, 0xff}, CFI_FOUND, (uint64_t)-2, 2},
		{0x0b, {0xfe, 0xff, 0xff, 0xff}, CFI_FOUND, (uint64_t)-2, 4},
		{0x0c, {1, 0, 0, 0, 0, 0, 0, 0}, CFI_FOUND, 1, 8},
		{0x1b, {0xff, 0xff, 0xff, 0xff}, CFI_FOUND, 0x1000, 4},
		{0x3b, {4, 0, 0, 0}, CFI_FOUND, 0x5004, 4},
		{0x50, {9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 0, 0, 0, 0, 0}, CFI_FOUND, 1, 15},
		{0x20, {0}, CFI_UNKNOWN, 0, 0},
		{0x40, {0}, CFI_UNKNOWN, 0, 0},
		{0x9b, {0}, CFI_UNKNOWN, 0, 0},
		{0x0f, {0}, CFI_UNKNOWN, 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes in = bytes_of(cases[i].bytes, sizeof(cases[i].bytes));
		const struct cfi_bases bases = {.address = 0x1001, .data = 0x5000};
		uint64_t value = 0;

		assert_int_equal(cfi_pointer_read(&in, cases[i].encoding, &bases, &value), cases[i].result);
		if (cases[i].result == CFI_FOUND) {
			assert_int_equal(value, cases[i].value);
			assert_int_equal(in.pos, cases[i].read);
		}
		in = bytes_of(cases[i].bytes, 0);
		if (cases[i].result == CFI_FOUND) {
			assert_int_equal(cfi_pointer_read(&in, cases[i].encoding, &bases, &value), CFI_BROKEN);
		}
	}
}

static void entries_that_reach_out_of_their_section_are_broken(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	uint64_t entries[FUNCTIONS][2];

	make_functions(fixture, entries);
	made_header(&fixture->made.header, entries, FUNCTIONS);
	uint8_t *fde = fixture->made.frames.data + entries[2][1];

	fde[0] = 0xf0; /* its length */
	fde[1] = 0xff;
	fde[2] = 0x01;
	open_made(fixture);
	assert_int_equal(ask(fixture, 64), CFI_BROKEN);
	fde[0] = 2;
	fde[1] = fde[2] = 0;
	open_made(fixture);
	assert_int_equal(ask(fixture, 64), CFI_BROKEN);
	teardown(fixture);
}

static void the_long_form_of_dwarf_is_read_too(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	/* 64-bit DWARF, version 4: a CIE of 0x18 bytes behind its length, an FDE of 0x24 */
	static const uint8_t debug[] = {0xff, 0xff, 0xff, 0xff, 0x18, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0,
		0, /* CIE */
		0xff, 0xff, 0xff, 0xff, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, /* FDE of CIE 0 */
		0, 0x50, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0x0e, 88, 0, 0};

	buffer_append(&fixture->made.debug_frames, debug, sizeof(debug));
	open_made(fixture);
	expect_offset(fixture, 0x1000, 88);
	fixture->made.debug_frames.data[22] = 4; /* addresses of four bytes */
	open_made(fixture);
	assert_int_equal(ask(fixture, 0x1000), CFI_NONE);
	teardown(fixture);
}

static void code_of_another_machine_is_unknown(void **state)
{
	(void)state;
	struct fixture *fixture = setup();
	uint64_t entries[FUNCTIONS][2];

	make_functions(fixture, entries);
	fixture->made.machine = EM_RISCV;
	open_made(fixture);
	assert_null(cfi_machine(fixture->cfi));
	assert_int_equal(ask(fixture, 0), CFI_UNKNOWN);
	teardown(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_with_and_without_table_and_sections),
		cmocka_unit_test(a_table_that_lies_is_not_believed),
		cmocka_unit_test(debug_frame_speaks_where_eh_frame_is_silent),
		cmocka_unit_test(debug_frame_may_be_packed),
		cmocka_unit_test(augmentations_are_known_or_unknown),
		cmocka_unit_test(pointers_are_read_as_they_are_encoded),
		cmocka_unit_test(entries_that_reach_out_of_their_section_are_broken),
		cmocka_unit_test(the_long_form_of_dwarf_is_read_too),
		cmocka_unit_test(code_of_another_machine_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
