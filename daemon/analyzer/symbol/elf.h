#ifndef ANALYZER_SYMBOL_ELF_H
#define ANALYZER_SYMBOL_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * The parts of an ELF file that say where its code and its names are (System V ABI, chapters 4 and 5). Bytes are read
 * with pread when they are needed: a file of the target may shrink at any time, and a mapped one would kill us. Contents are
 * hostile; numbers are checked where they are used, and every list is bounded.
 */
struct elf_source {
	int fd;                /* owned; -1: memory */
	const uint8_t *memory; /* borrowed for ever */
	uint64_t size;
};

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
	struct elf_source source;
	bool is_64;
	uint16_t machine;
	VEC(struct elf_segment) segments;
	VEC(struct elf_section) sections; /* by their number */
	bool is_broken; /* it has sections, and their table or a symbol table cannot be read */
	uint8_t build_id[ELF_BUILD_ID_BYTES];
	size_t build_id_bytes; /* 0: none */
};

/* Takes source. False: no ELF file of this byte order, or memory is out; image is empty then and the source closed. */
bool elf_image_open(struct elf_image *image, struct elf_source source);
void elf_image_close(struct elf_image *image);

/* Bytes that could be read, at most len. */
size_t elf_read(const struct elf_source *source, uint64_t offset, void *bytes, size_t len);
/* Where a place in the file is in the image's own address space. False: in no segment. */
bool elf_address(const struct elf_image *image, uint64_t file_offset, uint64_t *address);
/* The first section of this type (SHT_SYMTAB, SHT_DYNSYM); NULL: none. */
const struct elf_section *elf_section(const struct elf_image *image, uint32_t type);
/* The code of this process that the kernel brought: the vDSO. False: there is none. */
bool elf_vdso(struct elf_source *source);

#endif
