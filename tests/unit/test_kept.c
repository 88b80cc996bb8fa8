#include "analyzer/symbol/kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What was read, and the strings that it is told in. */
struct desk {
	struct strings *strings;
	struct kept *kept;
	struct buffer file;
};

static int set_up(void **state)
{
	struct desk *desk = calloc(1, sizeof(*desk));

	*state = desk;
	desk->strings = strings_create();
	return desk->strings != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	struct desk *desk = *state;

	kept_destroy(desk->kept);
	strings_destroy(desk->strings);
	buffer_finish(&desk->file);
	free(desk);
	return 0;
}

static uint32_t intern(struct desk *desk, const char *text)
{
	return strings_intern(desk->strings, text, strlen(text), NULL);
}

static void add_place(
	struct desk *desk, struct kept_image *image, uint64_t offset, bool is_return, const char *name)
{
	assert_true(VEC_PUSH(&image->places, ((struct kept_place){.offset = offset,
											 .name = intern(desk, name),
											 .is_return = is_return,
											 .is_named = name[0] != '['})));
}

static struct model_image library(struct desk *desk)
{
	return (struct model_image){.kind = JOURNAL_IMAGE_ELF,
		.path = intern(desk, "/lib/a.so"),
		.device = 1ull << 40,
		.inode = 7,
		.build_id = {1, 2, 3},
		.build_id_bytes = 3};
}

/* A library and the kernel, into desk->file. */
static void write_file(struct desk *desk)
{
	struct kept kept = {0};
	struct model_image model = library(desk);
	struct kept_image image = kept_image_of(&model), kernel = kept_image_of_kernel();

	image.state = 5;
	image.file_build_id[0] = 9;
	image.file_build_id_bytes = 1;
	add_place(desk, &image, 0x2000, true, "last");
	add_place(desk, &image, 0x1000, true, "first \xff");
	add_place(desk, &image, 0x1000, false, "[a.so+0x1000]");
	kept_sort(&image);
	add_place(desk, &kernel, 0xffffffff81000000, false, "first \xff");
	assert_true(VEC_PUSH(&kept.images, image) && VEC_PUSH(&kept.images, kernel));
	assert_true(kept_write(&desk->file, &kept, desk->strings));
	VEC_FINISH(&kept.images.items[0].places);
	VEC_FINISH(&kept.images.items[1].places);
	VEC_FINISH(&kept.images);
}

static bool read_file(struct desk *desk, struct error *err)
{
	kept_destroy(desk->kept);
	desk->kept = kept_read(desk->strings, desk->file.data, desk->file.len, err);
	return desk->kept != NULL;
}

static void assert_place(struct desk *desk, const struct kept_image *image, uint64_t offset,
	bool is_return, const char *name)
{
	const struct kept_place *place = kept_place(image, offset, is_return);

	assert_non_null(place);
	assert_int_equal(place->name, intern(desk, name));
	assert_int_equal(place->is_named, name[0] != '[');
}

static void tells_what_was_kept(void **state)
{
	struct desk *desk = *state;
	struct error err = {0};

	write_file(desk);
	assert_true(read_file(desk, &err));
	assert_int_equal(desk->kept->images.len, 2);
	struct model_image model = library(desk);
	const struct kept_image *image = kept_find(desk->kept, &model);
	assert_non_null(image);
	assert_int_equal(image->state, 5);
	assert_int_equal(image->file_build_id_bytes, 1);
	assert_int_equal(image->file_build_id[0], 9);
	assert_place(desk, image, 0x1000, true, "first \xff");
	assert_place(desk, image, 0x1000, false, "[a.so+0x1000]");
	assert_place(desk, image, 0x2000, true, "last");
	assert_null(kept_place(image, 0x2000, false));
	assert_null(kept_place(image, 0x1800, true));
	assert_place(desk, kept_find(desk->kept, NULL), 0xffffffff81000000, false, "first \xff");
}

static void another_file_is_another_image(void **state)
{
	struct desk *desk = *state;
	struct error err = {0};

	write_file(desk);
	assert_true(read_file(desk, &err));
	struct model_image others[5];
	for (size_t i = 0; i < 5; i++) {
		others[i] = library(desk);
	}
	others[0].inode++;
	others[1].device++;
	others[2].path = intern(desk, "/lib/b.so");
	others[3].build_id[2]++;
	others[4].inode_generation++;
	for (size_t i = 0; i < 5; i++) {
		assert_null(kept_find(desk->kept, &others[i]));
	}
}

/* The same bytes by the format's description, put together by hand. */
static void writes_what_the_format_says(void **state)
{
	static const char payload[] =
		"\x01\x0b\x01\x09/lib/a.so"
		"\x02\x11\x01\x01\x80\x80\x80\x80\x80\x20\x07\x00\x03\x01\x02\x03\x05\x01\x09"
		"\x01\x0f\x02\x0d[a.so+0x1000]"
		"\x01\x09\x03\x07"
		"first \xff"
		"\x01\x06\x04\x04last"
		"\x03\x0c\x03\x80\x20\x00\x02\x00\x03\x03\x80\x20\x03\x04"
		"\x02\x08\x05\x00\x00\x00\x00\x00\x00\x00"
		"\x03\x0d\x01\x80\x80\x80\x88\xf8\xff\xff\xff\xff\x01\x02\x03";
	struct desk *desk = *state;
	size_t len = sizeof(payload) - 1;

	write_file(desk);
	assert_int_equal(desk->file.len, KEPT_HEADER_BYTES + len);
	assert_memory_equal(desk->file.data, "PSY1\x01\x00\x00\x00", 8);
	assert_int_equal(desk->file.data[8] | desk->file.data[9] << 8, len);
	assert_memory_equal(desk->file.data + KEPT_HEADER_BYTES, payload, len);
}

static void refuses_whatever_is_cut_or_changed(void **state)
{
	struct desk *desk = *state;
	struct error err = {0};

	write_file(desk);
	size_t whole = desk->file.len;
	for (desk->file.len = 0; desk->file.len < whole; desk->file.len++) {
		assert_false(read_file(desk, &err));
		assert_non_null(strstr(err.message, "capture.symbols"));
	}
	for (size_t i = 0; i < whole; i++) {
		if (i < 20 || i >= KEPT_HEADER_BYTES) {
			desk->file.data[i] ^= 0x40;
			assert_false(read_file(desk, &err));
			desk->file.data[i] ^= 0x40;
		}
	}
	assert_true(read_file(desk, &err));
	desk->file.data[4] = 2;
	assert_false(read_file(desk, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(tells_what_was_kept),
		CASE(another_file_is_another_image),
		CASE(writes_what_the_format_says),
		CASE(refuses_whatever_is_cut_or_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
