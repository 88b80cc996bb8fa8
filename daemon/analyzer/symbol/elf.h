#ifndef ANALYZER_SYMBOL_ELF_H
#define ANALYZER_SYMBOL_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/image_source.h"

/*
 * The parts of an ELF file that say where its code and its names are (System V ABI, chapters 4 and 5). Contents are
 * hostile; numbers are checked where they are used, and every list is bounded.
 */
struct elf_segment { /* a PT_LOAD */
	uint64_t file_offset, file_bytes, address;
	bool is_executable;
};

struct elf_section {
	uint64_t file_offset, bytes, address;
	uint32_t type, link;
	bool is_code; /* allocated and executable */
};

#define ELF_MAX_SECTIONS   65536
#define ELF_BUILD_ID_BYTES 64

struct elf_image {
	struct image_source source;
	bool is_64;
	uint16_t machine;
	VEC(struct elf_segment) segments;
	VEC(struct elf_section) sections; /* by their number */
	bool is_broken; /* it has sections, and their table or a symbol table cannot be read */
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	size_t build_id_bytes; /* 0: none */
};

/* Takes source. False: no ELF file of this byte order, or memory is out; image is empty then and the source closed. */
bool elf_image_open(struct elf_image *image, struct image_source source);
void elf_image_close(struct elf_image *image);

/* Where a place in the file is in the image's own address space. False: in no segment. */
bool elf_address(const struct elf_image *image, uint64_t file_offset, uint64_t *address);
/* The first section of this type (SHT_SYMTAB, SHT_DYNSYM); NULL: none. */
const struct elf_section *elf_section(const struct elf_image *image, uint32_t type);

#endif
