/*
 * ELF files as images: 8 bytes that say where to look, then the file. Whatever it is, what it says of itself keeps its limits, and what is asked of
 * it has an answer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "image/image_unpack.h"
#include "unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(const struct image_part *part)
{
	if (part->bytes > UINT64_MAX - part->offset || part->bytes > UINT64_MAX - part->address) {
		abort();
	}
}

/* An address that a mapping of the whole file shows is where the bias says. */
static void check_bias(const struct image *image, uint64_t seed)
{
	uint64_t start = 0x7f0000000000, bias, offset, left, place = (seed >> 8) & 0xffff;

	if (image_bias(image, start, 0x10000, seed & 0xff000, &bias) &&
		image_offset(image, place, &offset, &left) && left == 0) {
		abort();
	}
}

static void check_facts(const struct image *image, uint64_t seed)
{
	const struct image_facts *facts = image_facts(image);
	size_t len;

	if (facts->segments.len > IMAGE_MAX_SEGMENTS) {
		abort();
	}
	check_part(&facts->frame_header);
	check_part(&facts->frames);
	check_part(&facts->debug_frames);
	check_bias(image, seed);
	free(image_unpack(image, &facts->debug_frames, &len));
}

/* Around where code is said to be. */
static void look_up(struct image *image, struct cfi_reader *reader, uint64_t seed)
{
	struct cfi *cfi = cfi_create(image, reader);
	const struct image_facts *facts = image_facts(image);

	for (size_t i = 0; cfi != NULL && i < facts->segments.len && i < 4; i++) {
		const struct image_segment *segment = &facts->segments.items[i];
		struct cfi_row row;

		for (unsigned shift = 0; shift < 64; shift += 12) {
			cfi_row_at(cfi, reader, segment->address + (seed >> shift & 0xfff), &row, NULL);
		}
	}
	cfi_release(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cfi_reader reader;
	struct error err = {0};
	uint64_t seed;

	if (size < sizeof(seed) || (reader.cache == NULL && !cfi_reader_init(&reader))) {
		return 0;
	}
	memcpy(&seed, data, sizeof(seed));
	struct image *image = image_open_memory(data + sizeof(seed), size - sizeof(seed), &err);

	if (image == NULL) {
		return err.code == ERROR_NONE ? abort(), 0 : 0;
	}
	check_facts(image, seed);
	look_up(image, &reader, seed);
	image_release(image);
	return 0;
}
