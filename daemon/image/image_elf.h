#ifndef IMAGE_IMAGE_ELF_H
#define IMAGE_IMAGE_ELF_H

#include <stdbool.h>

#include "image/image.h"
#include "image/image_source.h"
#include "protocol/error.h"

/*
 * The facts of an ELF file of 64 bits, little-endian (System V ABI, chapters 4 and 5). Works without section headers, which can be
 * stripped: then there is no .debug_frame, and .eh_frame reaches to the end of its segment. False: err; facts may be half filled.
 */
bool image_elf_read(
	const struct image_source *source, struct image_facts *facts, struct error *err);

#endif
