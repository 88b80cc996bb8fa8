#include "support/made_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SECTIONS 5

static const char names[] = "\0.shstrtab\0.eh_frame_hdr\0.eh_frame\0.debug_frame";

static const Elf64_Phdr plain_segments[] = {
	{.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = MADE_CODE, .p_memsz = MADE_CODE},
	{.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = MADE_CODE,
		.p_vaddr = MADE_CODE,
		.p_filesz = MADE_CODE_BYTES},
	{.p_type = PT_LOAD,
		.p_flags = PF_R,
		.p_offset = MADE_HEADER,
		.p_vaddr = MADE_HEADER,
		.p_filesz = MADE_DEBUG - MADE_HEADER},
};

static void put(uint8_t *to, size_t at, const void *bytes, size_t len)
{
	assert_true(at + len <= MADE_BYTES);
	if (len > 0) {
		memcpy(to + at, bytes, len);
	}
}

static Elf64_Shdr section(
	uint32_t name, const struct buffer *contents, uint64_t at, uint64_t address, uint64_t flags)
{
	return (Elf64_Shdr){
		.sh_name = contents->len == 0 ? 0 : name,
		.sh_type = SHT_PROGBITS,
		.sh_offset = at,
		.sh_addr = address,
		.sh_size = contents->len,
		.sh_flags = flags,
	};
}

static void put_sections(const struct made_image *made, uint8_t *to, Elf64_Ehdr *header)
{
	const size_t names_at = MADE_BYTES - 0x400;
	const Elf64_Shdr sections[SECTIONS] = {
		{0},
		{.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = sizeof(names)},
		section(11, &made->header, MADE_HEADER, MADE_HEADER, SHF_ALLOC),
		section(25, &made->frames, MADE_FRAMES, MADE_FRAMES, SHF_ALLOC),
		section(35, &made->debug_frames, MADE_DEBUG, 0, made->debug_flags),
	};

	put(to, names_at, names, sizeof(names));
	put(to, names_at + 0x100, sections, sizeof(sections));
	header->e_shoff = names_at + 0x100;
	header->e_shentsize = sizeof(sections[0]);
	header->e_shnum = SECTIONS;
	header->e_shstrndx = 1;
}

static void put_segments(const struct made_image *made, uint8_t *to, Elf64_Ehdr *header)
{
	const Elf64_Phdr *segments = made->segments == NULL ? plain_segments : made->segments;
	size_t count = made->segments == NULL ? 3 : made->segment_count;
	const Elf64_Phdr frames = {.p_type = PT_GNU_EH_FRAME,
		.p_flags = PF_R,
		.p_offset = MADE_HEADER,
		.p_vaddr = MADE_HEADER,
		.p_filesz = made->header.len};

	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(segments[0]);
	put(to, header->e_phoff, segments, count * sizeof(segments[0]));
	if (made->header.len > 0 && !made->has_no_header_segment) {
		put(to, header->e_phoff + count++ * sizeof(segments[0]), &frames, sizeof(frames));
	}
	header->e_phnum = (Elf64_Half)count;
}

void made_image_write(const struct made_image *made, uint8_t *to)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = made->machine == 0 ? EM_X86_64 : made->machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
	};

	memset(to, 0, MADE_BYTES);
	put_segments(made, to, &header);
	if (!made->has_no_sections) {
		put_sections(made, to, &header);
	}
	put(to, 0, &header, sizeof(header));
	put(to, MADE_HEADER, made->header.data, made->header.len);
	put(to, MADE_FRAMES, made->frames.data, made->frames.len);
	put(to, MADE_DEBUG, made->debug_frames.data, made->debug_frames.len);
}

void made_image_finish(struct made_image *made)
{
	buffer_finish(&made->header);
	buffer_finish(&made->frames);
	buffer_finish(&made->debug_frames);
}

static void append(struct buffer *buffer, const void *bytes, size_t len)
{
	assert_true(buffer_append(buffer, bytes, len));
}

static void append_u32(struct buffer *buffer, uint32_t value)
{
	append(buffer, &value, sizeof(value));
}

/* Pads an entry with DW_CFA_nop and sets its length. */
static size_t seal(struct buffer *section, size_t at)
{
	while (section->len % 8 != 0) {
		append(section, "", 1);
	}
	uint32_t len = (uint32_t)(section->len - at - 4);

	memcpy(section->data + at, &len, sizeof(len));
	return at;
}

size_t made_cie(struct buffer *section, bool is_debug, const char *letters, const char *data,
	size_t data_len, const uint8_t *program, size_t len)
{
	const uint8_t alignments[] = {1, 0x78, 16}; /* code 1, data -8, return address column */
	size_t at = section->len;

	append_u32(section, 0);
	append_u32(section, is_debug ? 0xffffffff : 0);
	append(section, "\1", 1);
	append(section, letters, strlen(letters) + 1);
	append(section, alignments, sizeof(alignments));
	if (letters[0] == 'z') {
		assert_true(buffer_varint(section, data_len));
		append(section, data, data_len);
	}
	append(section, program, len);
	return seal(section, at);
}

size_t made_plain_cie(struct buffer *section)
{
	return made_cie(section, false, "zR", "\x1b", 1, MADE_PROGRAM(0x0c, 7, 8, 0x80 | 16, 1));
}

size_t made_fde(struct buffer *section, size_t cie, uint64_t begin, uint32_t length,
	const uint8_t *program, size_t len)
{
	size_t at = section->len;

	append_u32(section, 0);
	append_u32(section, (uint32_t)(at + 4 - cie));
	append_u32(section, (uint32_t)(begin - (MADE_FRAMES + section->len)));
	append_u32(section, length);
	append(section, "", 1);
	append(section, program, len);
	return seal(section, at);
}

size_t made_debug_fde(struct buffer *section, size_t cie, uint64_t begin, uint64_t length,
	const uint8_t *program, size_t len)
{
	size_t at = section->len;

	append_u32(section, 0);
	append_u32(section, (uint32_t)cie);
	append(section, &begin, sizeof(begin));
	append(section, &length, sizeof(length));
	append(section, program, len);
	return seal(section, at);
}

void made_header(struct buffer *header, const uint64_t (*entries)[2], size_t count)
{
	append(header, "\1\x1b\3\x3b", 4);
	append_u32(header, MADE_FRAMES - (MADE_HEADER + 4));
	append_u32(header, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		append_u32(header, (uint32_t)(entries[i][0] - MADE_HEADER));
		append_u32(header, (uint32_t)(MADE_FRAMES + entries[i][1] - MADE_HEADER));
	}
}
