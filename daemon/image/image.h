#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/image_source.h"
#include "protocol/error.h"

/*
 * A file that holds code: one neutral view, whatever its format. What the file says about itself is read once, checked, and never
 * changes; so an image may be shared by any number of threads, which count references. Its other bytes are read when they are
 * needed, each thread through a cache of its own (image_cache.h). Contents are hostile: every list is bounded, every number checked.
 *
 * "Address" means an address in the image's own space, as its linker chose it; address + bias is where it is in a process.
 */
struct image;

enum image_machine { IMAGE_MACHINE_OTHER, IMAGE_MACHINE_X86_64, IMAGE_MACHINE_AARCH64 };

enum image_packing { IMAGE_PACKING_NONE, IMAGE_PACKING_ZLIB, IMAGE_PACKING_ZSTD };

struct image_segment { /* what a loader maps: offset … is found at address … */
	uint64_t offset, bytes, address;
	bool is_executable;
};

struct image_part {                  /* bytes 0: the image has no such part */
	uint64_t offset, bytes, address; /* address 0 and packing: never loaded */
	enum image_packing packing;
	uint64_t unpacked_bytes; /* what a packed part says about itself; not to be believed */
};

#define IMAGE_MAX_SEGMENTS    1024
#define IMAGE_MAX_SECTIONS    65536
#define IMAGE_MAX_NAMES_BYTES (1024 * 1024) /* of the table of section names */

struct image_facts {
	enum image_machine machine;
	uint8_t pointer_bytes;
	VEC(struct image_segment) segments;
	struct image_part frame_header; /* .eh_frame_hdr: LSB Core 5.0, 10.6.2 */
	struct image_part frames;       /* .eh_frame */
	struct image_part debug_frames; /* .debug_frame: DWARF 5, 6.4.1 */
};

/* Takes fd, also on failure. NULL: no file of a known format (unsupported), or it cannot be read; err says which. The caller has one reference. */
struct image *image_open(int fd, struct error *err);
/* The same of bytes in memory that live for ever. */
struct image *image_open_memory(const void *memory, size_t bytes, struct error *err);
/* The vDSO (image_source.h). NULL: there is none. */
struct image *image_open_vdso(struct error *err);

/* References; any thread. NULL is fine for release. */
struct image *image_hold(struct image *image);
void image_release(struct image *image);

/* Valid as long as the reference. */
const struct image_facts *image_facts(const struct image *image);
const struct image_source *image_source(const struct image *image);
/* With the pointer it tells two images apart even when one lived where the other lives now. */
uint64_t image_born_ns(const struct image *image);

/*
 * The load bias that a mapping of the file tells: start and length in a process, and the offset in the file that is found at start. From
 * segments, not from sections: lld and mold put the same page of a file into two mappings with different biases, so of the
 * segments that the mapping shows, the executable one that it shows most of counts. False: it shows none.
 */
bool image_bias(const struct image *image, uint64_t start, uint64_t length, uint64_t file_offset,
	uint64_t *bias);
/* Where an address is in the file, and how many bytes of its segment follow. False: in no segment's file part. */
bool image_offset(
	const struct image *image, uint64_t address, uint64_t *file_offset, uint64_t *left);
/* Does a loader make this address executable? */
bool image_is_code(const struct image *image, uint64_t address);

#endif
