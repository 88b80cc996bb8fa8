#ifndef TESTS_SUPPORT_MADE_IMAGE_H
#define TESTS_SUPPORT_MADE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>

#include "base/buffer.h"

/*
 * Images and call-frame information made of bytes. An image is MADE_BYTES long; what is in it is found in the file at its address, so
 * that an offset is an address, unless a test makes its own segments. Whatever goes wrong fails the test.
 */
#define MADE_BYTES      0x10000
#define MADE_CODE       0x4000 /* code, MADE_CODE_BYTES of it */
#define MADE_CODE_BYTES 0x2000
#define MADE_HEADER     0x6000 /* .eh_frame_hdr */
#define MADE_FRAMES     0x6800 /* .eh_frame */
#define MADE_DEBUG      0x9000 /* .debug_frame */

struct made_image {
	uint16_t machine;
	const Elf64_Phdr *segments; /* NULL: code, and all of the rest to read */
	size_t segment_count;
	struct buffer header, frames, debug_frames; /* empty: not there */
	uint64_t debug_flags;                       /* SHF_COMPRESSED */
	bool has_no_sections;
	bool has_no_header_segment;
};

/* Writes MADE_BYTES. */
void made_image_write(const struct made_image *made, uint8_t *to);
void made_image_finish(struct made_image *made);

/* The bytes of instructions, and how many they are. */
#define MADE_PROGRAM(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Appends a CIE of x86-64 to a section; the offset of the entry. letters: "zR" and so on, data what belongs to them. */
size_t made_cie(struct buffer *section, bool is_debug, const char *letters, const char *data,
	size_t data_len, const uint8_t *program, size_t len);
/* A CIE "zR" whose addresses are pcrel|sdata4: CFA = sp + 8, return address at CFA - 8. */
size_t made_plain_cie(struct buffer *section);
/* An FDE of .eh_frame for such a CIE, for code from an address. */
size_t made_fde(struct buffer *section, size_t cie, uint64_t begin, uint32_t length,
	const uint8_t *program, size_t len);
/* An FDE of .debug_frame. */
size_t made_debug_fde(struct buffer *section, size_t cie, uint64_t begin, uint64_t length,
	const uint8_t *program, size_t len);
/* .eh_frame_hdr: count pairs of an address and an offset in .eh_frame. */
void made_header(struct buffer *header, const uint64_t (*entries)[2], size_t count);

#endif
