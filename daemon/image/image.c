#include "image/image.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "image/image_elf.h"
#include "protocol/clock.h"

struct image {
	struct image_source source;
	struct image_facts facts;
	uint64_t born_ns;
	atomic_uint references;
};

static struct image *create(struct image_source source, struct error *err)
{
	struct image *image = calloc(1, sizeof(*image));

	if (image == NULL) {
		image_source_close(&source);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for an image");
		return NULL;
	}
	image->source = source;
	image->born_ns = clock_monotonic_ns();
	atomic_init(&image->references, 1);
	if (!image_elf_read(&image->source, &image->facts, err)) {
		image_release(image);
		return NULL;
	}
	return image;
}

struct image *image_open(int fd, struct error *err)
{
	struct image_source source;

	return image_source_open(&source, fd, err) ? create(source, err) : NULL;
}

struct image *image_open_memory(const void *memory, size_t bytes, struct error *err)
{
	return create((struct image_source){.fd = -1, .memory = memory, .bytes = bytes}, err);
}

struct image *image_open_vdso(struct error *err)
{
	struct image_source source;

	return image_source_vdso(&source, err)
			   ? image_open_memory(source.memory, (size_t)source.bytes, err)
			   : NULL;
}

struct image *image_hold(struct image *image)
{
	atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
	return image;
}

void image_release(struct image *image)
{
	if (image == NULL ||
		atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) != 1) {
		return;
	}
	VEC_FINISH(&image->facts.segments);
	image_source_close(&image->source);
	free(image);
}

const struct image_facts *image_facts(const struct image *image)
{
	return &image->facts;
}

const struct image_source *image_source(const struct image *image)
{
	return &image->source;
}

uint64_t image_born_ns(const struct image *image)
{
	return image->born_ns;
}

/* How many bytes of the segment's file part lie in [offset, offset + length). */
static uint64_t shown(const struct image_segment *segment, uint64_t offset, uint64_t length)
{
	uint64_t start = offset > segment->offset ? offset : segment->offset;
	uint64_t segment_end = segment->offset + segment->bytes;
	uint64_t end = length > UINT64_MAX - offset ? UINT64_MAX : offset + length;

	end = end < segment_end ? end : segment_end;
	return end > start ? end - start : 0;
}

bool image_bias(const struct image *image, uint64_t start, uint64_t length, uint64_t file_offset,
	uint64_t *bias)
{
	const struct image_segment *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < image->facts.segments.len; i++) {
		const struct image_segment *segment = &image->facts.segments.items[i];
		uint64_t bytes = shown(segment, file_offset, length);
		bool is_better =
			best == NULL ||
			(segment->is_executable == best->is_executable ? bytes > most : segment->is_executable);

		if (bytes > 0 && is_better) {
			best = segment;
			most = bytes;
		}
	}
	if (best == NULL) {
		return false;
	}
	/* The segment's first byte is at start + (its offset - file_offset), which may be before start. */
	*bias = start + best->offset - file_offset - best->address;
	return true;
}

bool image_offset(
	const struct image *image, uint64_t address, uint64_t *file_offset, uint64_t *left)
{
	for (size_t i = 0; i < image->facts.segments.len; i++) {
		const struct image_segment *segment = &image->facts.segments.items[i];

		if (address >= segment->address && address - segment->address < segment->bytes) {
			*file_offset = segment->offset + (address - segment->address);
			*left = segment->bytes - (address - segment->address);
			return true;
		}
	}
	return false;
}

bool image_is_code(const struct image *image, uint64_t address)
{
	for (size_t i = 0; i < image->facts.segments.len; i++) {
		const struct image_segment *segment = &image->facts.segments.items[i];

		if (segment->is_executable && address >= segment->address &&
			address - segment->address < segment->bytes) {
			return true;
		}
	}
	return false;
}
