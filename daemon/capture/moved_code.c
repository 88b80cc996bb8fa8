#include "capture/moved_code.h"

#include <string.h>

#include <unistd.h>

#include "target/target.h"

/* So many pieces of it are compared, from one end to the other. */
#define PIECES      8
#define PIECE_BYTES 512

void moved_code_put(struct moved_code *moved, const struct sampler_mapping *mapping, uint32_t image)
{
	const struct mappings_range range = {
		.start = mapping->start,
		.end = mapping->start + mapping->length,
		.image = image,
		.bias = mapping->start - mapping->file_offset,
	};
	mappings_put(&moved->files, &range);
}

static bool is_same_at(pid_t pid, uint64_t address, int fd, uint64_t file_offset)
{
	uint8_t there[PIECE_BYTES], here[PIECE_BYTES];
	return target_read_memory(pid, address, there, sizeof(there)) &&
		   pread(fd, here, sizeof(here), (off_t)file_offset) == sizeof(here) &&
		   memcmp(there, here, sizeof(here)) == 0;
}

static bool is_same(const struct sampler_mapping *mapping, int fd, uint64_t file_offset)
{
	uint64_t last = mapping->length - PIECE_BYTES;
	for (uint64_t i = 0; i < PIECES; i++) {
		uint64_t at = last / (PIECES - 1) * i;
		if (!is_same_at(mapping->pid, mapping->start + at, fd, file_offset + at)) {
			return false;
		}
	}
	return true;
}

bool moved_code_find(const struct moved_code *moved, const struct images *images,
	const struct sampler_mapping *mapping, struct images_image *image, uint64_t *file_offset)
{
	struct mappings_range range;
	if (mapping->inode != 0 || mapping->length < PIECE_BYTES ||
		!mappings_find(&moved->files, mapping->start, &range) ||
		mapping->length > range.end - mapping->start || !images_get(images, range.image, image) ||
		image->fd < 0) {
		return false;
	}
	*file_offset = mapping->start - range.bias;
	return is_same(mapping, image->fd, *file_offset);
}

void moved_code_clear(struct moved_code *moved)
{
	mappings_clear(&moved->files);
}

void moved_code_finish(struct moved_code *moved)
{
	mappings_finish(&moved->files);
}
