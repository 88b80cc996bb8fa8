#include "image/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "image/image_cache.h"
#include "image/image_unpack.h"
#include "support/made_image.h"

static uint8_t bytes[MADE_BYTES];

static struct image *open_made(const struct made_image *made)
{
	struct error err = {0};

	made_image_write(made, bytes);
	struct image *image = image_open_memory(bytes, sizeof(bytes), &err);

	if (image == NULL) {
		fail_msg("%s", err.message);
	}
	return image;
}

static int open_file(size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	return fd;
}

static void refuse(size_t len, enum error_code code, const char *text)
{
	struct error err = {0};

	assert_null(image_open(open_file(len), &err));
	assert_int_equal(err.code, code);
	if (strstr(err.message, text) == NULL) {
		fail_msg("\"%s\" does not tell \"%s\"", err.message, text);
	}
}

static void parts_are_found_by_sections_and_by_the_segment(void **state)
{
	(void)state;
	struct made_image made = {.machine = EM_AARCH64};
	const uint64_t entries[][2] = {{MADE_CODE, 0}};

	made_fde(&made.frames, made_plain_cie(&made.frames), MADE_CODE, 16, MADE_PROGRAM(0));
	made_header(&made.header, entries, 1);
	made_cie(&made.debug_frames, true, "", "", 0, MADE_PROGRAM(0x0c, 7, 8));
	for (int with_sections = 0; with_sections < 2; with_sections++) {
		for (int with_segment = 0; with_segment < 2; with_segment++) {
			made.has_no_sections = !with_sections;
			made.has_no_header_segment = !with_segment;
			struct image *image = open_made(&made);
			const struct image_facts *facts = image_facts(image);

			assert_int_equal(facts->machine, IMAGE_MACHINE_AARCH64);
			assert_int_equal(
				facts->frame_header.bytes, with_sections || with_segment ? made.header.len : 0);
			assert_int_equal(facts->frames.bytes, with_sections ? made.frames.len : 0);
			assert_int_equal(facts->frames.address, with_sections ? MADE_FRAMES : 0);
			assert_int_equal(facts->debug_frames.bytes, with_sections ? made.debug_frames.len : 0);
			image_release(image);
		}
	}
	made_image_finish(&made);
}

/* A segment: offset, address, bytes, executable. */
#define SEGMENT(o, a, b, x)                                                                        \
	{                                                                                              \
		.p_type = PT_LOAD, .p_flags = PF_R | ((x) ? PF_X : 0), .p_offset = (o), .p_vaddr = (a),    \
		.p_filesz = (b), .p_memsz = (b)                                                            \
	}

/* start, length and file offset of a mapping as the kernel makes it, and the bias that it must tell. */
struct bias_case {
	const char *name;
	Elf64_Phdr segments[3];
	uint64_t start, length, offset, bias;
	bool is_told;
};

static const struct bias_case bias_cases[] = {
	{"GNU ld",
		{SEGMENT(0, 0, 0x5b8, 0), SEGMENT(0x1000, 0x1000, 0x1d5, 1),
			SEGMENT(0x2000, 0x2000, 0x100, 0)},
		0x555555555000, 0x1000, 0x1000, 0x555555554000, true},
	/* lld: the end of one segment and the beginning of the next share a page of the file, at different biases of page and address */
	{"lld",
		{SEGMENT(0, 0, 0x5c4, 0), SEGMENT(0x5d0, 0x15d0, 0x190, 1),
			SEGMENT(0x760, 0x2760, 0x180, 0)},
		0x555555555000, 0x1000, 0, 0x555555554000, true},
	{"lld's first segment",
		{SEGMENT(0, 0, 0x5c4, 0), SEGMENT(0x100000, 0x15d0, 0x190, 1),
			SEGMENT(0x760, 0x2760, 0x180, 0)},
		0x555555554000, 0x1000, 0, 0x555555554000, true},
	{"mold, code at the front of a page that others share",
		{SEGMENT(0, 0, 0x9f0, 0), SEGMENT(0x9f0, 0x19f0, 0x2e5, 1),
			SEGMENT(0xcd8, 0x2cd8, 0x328, 0)},
		0x7f0000001000, 0x1000, 0, 0x7f0000000000, true},
	{"an executable at a fixed address",
		{SEGMENT(0, 0x400000, 0x4b0, 0), SEGMENT(0x1000, 0x401000, 0x9d, 1),
			SEGMENT(0x2000, 0x402000, 0x10, 0)},
		0x401000, 0x1000, 0x1000, 0, true},
	{"one large segment of a static-pie",
		{SEGMENT(0, 0, 0xc8000, 1), SEGMENT(0xc9000, 0xca000, 0x10, 0), SEGMENT(0, 0, 0, 0)},
		0x7ffff7f00000, 0xc8000, 0, 0x7ffff7f00000, true},
	{"a prelinked library",
		{SEGMENT(0, 0x3ab0600000, 0x1000, 0), SEGMENT(0x1000, 0x3ab0601000, 0x4000, 1),
			SEGMENT(0x6000, 0x3ab0606000, 1, 0)},
		0x3ab0601000, 0x4000, 0x1000, 0, true},
	{"pages of 64 KiB",
		{SEGMENT(0, 0, 0x8f8, 0), SEGMENT(0x8f8, 0x108f8, 0x9000, 1),
			SEGMENT(0xfda8, 0x3fda8, 8, 0)},
		0xaaaaaaab0000, 0x10000, 0, 0xaaaaaaaa0000, true},
	{"the middle of a segment, which mprotect has split",
		{SEGMENT(0, 0, 0x500, 0), SEGMENT(0x1000, 0x1000, 0x9000, 1),
			SEGMENT(0xb000, 0xc000, 1, 0)},
		0x555555558000, 0x1000, 0x4000, 0x555555554000, true},
	{"what is in no segment",
		{SEGMENT(0, 0, 0x5b8, 0), SEGMENT(0x1000, 0x1000, 0x1d5, 1), SEGMENT(0, 0, 0, 0)},
		0x7f0000000000, 0x1000, 0x8000, 0, false},
};

static void the_bias_comes_from_segments_whatever_the_linker(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bias_cases) / sizeof(bias_cases[0]); i++) {
		const struct bias_case *wanted = &bias_cases[i];
		struct made_image made = {.segments = wanted->segments, .segment_count = 3};
		struct image *image = open_made(&made);
		uint64_t bias = 1;
		bool is_told = image_bias(image, wanted->start, wanted->length, wanted->offset, &bias);

		if (is_told != wanted->is_told || (is_told && bias != wanted->bias)) {
			fail_msg("%s: %d %llx", wanted->name, is_told, (unsigned long long)bias);
		}
		image_release(image);
	}
}

static void addresses_become_offsets_within_their_segment(void **state)
{
	(void)state;
	static const Elf64_Phdr segments[] = {
		SEGMENT(0, 0, 0x5c4, 0), SEGMENT(0x5d0, 0x15d0, 0x190, 1)};
	struct made_image made = {.segments = segments, .segment_count = 2};
	struct image *image = open_made(&made);
	uint64_t offset, left;

	assert_true(image_offset(image, 0x15e0, &offset, &left));
	assert_int_equal(offset, 0x5e0);
	assert_int_equal(left, 0x180);
	assert_false(image_offset(image, 0x15cf, &offset, &left));
	assert_false(image_offset(image, 0x1760, &offset, &left));
	assert_true(image_is_code(image, 0x15d0));
	assert_false(image_is_code(image, 0x10));
	image_release(image);
}

static void what_is_no_readable_file_is_refused_by_name(void **state)
{
	(void)state;
	struct made_image made = {0};
	struct error err = {0};
	int pipe_fds[2];

	made_image_write(&made, bytes);
	refuse(10, ERROR_UNSUPPORTED, "no ELF file");
	refuse(100, ERROR_UNSUPPORTED, "ends before its program header");
	bytes[EI_CLASS] = ELFCLASS32;
	refuse(MADE_BYTES, ERROR_UNSUPPORTED, "only 64 bits");
	made_image_write(&made, bytes);
	bytes[offsetof(Elf64_Ehdr, e_phnum) + 1] = 0xff;
	refuse(MADE_BYTES, ERROR_UNSUPPORTED, "at most 1024");
	assert_int_equal(pipe(pipe_fds), 0);
	assert_null(image_open(pipe_fds[0], &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_int_equal(fcntl(pipe_fds[0], F_GETFD), -1);
	close(pipe_fds[1]);
}

static void a_file_that_shrinks_is_read_as_far_as_it_goes(void **state)
{
	(void)state;
	struct made_image made = {0};
	struct error err = {0};
	uint8_t read[16];

	made_image_write(&made, bytes);
	for (size_t i = 0x8000; i < 0xb000; i++) {
		bytes[i] = (uint8_t)(i / 16);
	}
	int fd = open_file(MADE_BYTES), ours = dup(fd);
	struct image *image = image_open(fd, &err);
	struct image_cache *cache = image_cache_create();

	assert_non_null(image);
	/* across pages */
	assert_true(image_cache_read(cache, image, 0x8ff8, read, sizeof(read)));
	assert_memory_equal(read, bytes + 0x8ff8, sizeof(read));
	assert_false(image_cache_read(cache, image, MADE_BYTES - 8, read, sizeof(read)));
	assert_int_equal(ftruncate(ours, 0xa010), 0);
	assert_true(image_cache_read(cache, image, 0xa000, read, 16));
	assert_memory_equal(read, bytes + 0xa000, 16);
	assert_false(image_cache_read(cache, image, 0xa008, read, 16));
	assert_false(image_cache_read(cache, image, 0xc000, read, 1));
	/* what was read before is still known */
	assert_true(image_cache_read(cache, image, 0x8ff8, read, sizeof(read)));
	image_cache_destroy(cache);
	image_release(image);
	close(ours);
}

static void two_images_never_share_their_pages(void **state)
{
	(void)state;
	struct made_image made = {0};
	struct image_cache *cache = image_cache_create();
	struct error err = {0};
	uint8_t read;

	made_image_write(&made, bytes);
	/* More images than the cache has pages, one behind the other: addresses of freed ones come again. */
	for (unsigned i = 0; i < 2 * IMAGE_CACHE_SETS * IMAGE_CACHE_WAYS; i++) {
		bytes[0x8000] = (uint8_t)i;
		struct image *image = image_open(open_file(MADE_BYTES), &err);

		assert_non_null(image);
		assert_true(image_cache_read(cache, image, 0x8000, &read, 1));
		assert_int_equal(read, (uint8_t)i);
		image_release(image);
	}
	image_cache_destroy(cache);
}

static struct image_part pack(
	struct made_image *made, uint32_t type, const void *packed, size_t len, uint64_t unpacked)
{
	const Elf64_Chdr header = {.ch_type = type, .ch_size = unpacked, .ch_addralign = 1};

	made->debug_frames.len = 0;
	made->debug_flags = SHF_COMPRESSED;
	buffer_append(&made->debug_frames, &header, sizeof(header));
	buffer_append(&made->debug_frames, packed, len);
	struct image *image = open_made(made);
	struct image_part part = image_facts(image)->debug_frames;

	image_release(image);
	return part;
}

static void check_unpacking(struct made_image *made, uint32_t type, const void *packed, size_t len)
{
	uint8_t contents[4000] = {1, 2, 3};
	struct image_part part = pack(made, type, packed, len, sizeof(contents));
	struct error err = {0};
	struct image *image = image_open_memory(bytes, sizeof(bytes), &err);
	size_t unpacked_len = 0;
	uint8_t *unpacked = image_unpack(image, &part, &unpacked_len);

	assert_non_null(unpacked);
	assert_int_equal(unpacked_len, sizeof(contents));
	assert_memory_equal(unpacked, contents, sizeof(contents));
	free(unpacked);
	part.unpacked_bytes++;
	assert_null(image_unpack(image, &part, &unpacked_len));
	part.unpacked_bytes -= 2;
	assert_null(image_unpack(image, &part, &unpacked_len));
	part.unpacked_bytes = IMAGE_UNPACK_BYTES + 1ull;
	assert_null(image_unpack(image, &part, &unpacked_len));
	part.unpacked_bytes = sizeof(contents);
	part.bytes -= 4;
	assert_null(image_unpack(image, &part, &unpacked_len));
	part.bytes = UINT64_MAX;
	assert_null(image_unpack(image, &part, &unpacked_len));
	image_release(image);
}

static void packed_parts_are_unpacked_to_what_they_say(void **state)
{
	(void)state;
	struct made_image made = {0};
	uint8_t contents[4000] = {1, 2, 3}, packed[4096];
	uLongf len = sizeof(packed);

	assert_int_equal(compress(packed, &len, contents, sizeof(contents)), Z_OK);
	check_unpacking(&made, ELFCOMPRESS_ZLIB, packed, len);
	size_t zstd_len = ZSTD_compress(packed, sizeof(packed), contents, sizeof(contents), 3);
	assert_false(ZSTD_isError(zstd_len));
	check_unpacking(&made, 2, packed, zstd_len);
	assert_int_equal(pack(&made, 99, packed, zstd_len, sizeof(contents)).bytes, 0);
	made_image_finish(&made);
}

static void the_vdso_is_an_image(void **state)
{
	(void)state;
	struct error err = {0};
	struct image *image = image_open_vdso(&err);

	if (image == NULL) {
		skip(); /* this kernel, or an emulator, has none */
	}
	assert_true(image_facts(image)->frame_header.bytes > 0);
	assert_true(image_facts(image)->frames.bytes > 0);
	image_release(image_hold(image));
	image_release(image);
	image_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_found_by_sections_and_by_the_segment),
		cmocka_unit_test(the_bias_comes_from_segments_whatever_the_linker),
		cmocka_unit_test(addresses_become_offsets_within_their_segment),
		cmocka_unit_test(what_is_no_readable_file_is_refused_by_name),
		cmocka_unit_test(a_file_that_shrinks_is_read_as_far_as_it_goes),
		cmocka_unit_test(two_images_never_share_their_pages),
		cmocka_unit_test(packed_parts_are_unpacked_to_what_they_say),
		cmocka_unit_test(the_vdso_is_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
