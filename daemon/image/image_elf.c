#include "image/image_elf.h"

#include <stdlib.h>
#include <string.h>

#include <elf.h>

#define STEP_SECTIONS 64 /* headers that are read at once */

/* Fields are copied out: our machines have the file's byte order, but a file need not align them. */
static bool read_at(const struct image_source *source, uint64_t offset, void *to, size_t len)
{
	return image_source_read(source, offset, to, len) == len;
}

static bool read_header(const struct image_source *source, Elf64_Ehdr *header, struct error *err)
{
	if (!read_at(source, 0, header, sizeof(*header)) ||
		memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
		return error_set(err, ERROR_UNSUPPORTED, "no ELF file");
	}
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
		return error_set(err, ERROR_UNSUPPORTED,
			"an ELF file of class %u and byte order %u; only 64 bits, little-endian is read",
			header->e_ident[EI_CLASS], header->e_ident[EI_DATA]);
	}
	if (header->e_phnum > IMAGE_MAX_SEGMENTS || header->e_phentsize != sizeof(Elf64_Phdr)) {
		return error_set(err, ERROR_UNSUPPORTED,
			"an ELF file with %u program headers of %u bytes; at most %d of %zu are read",
			header->e_phnum, header->e_phentsize, IMAGE_MAX_SEGMENTS, sizeof(Elf64_Phdr));
	}
	return true;
}

static enum image_machine machine_of(uint16_t number)
{
	return number == EM_X86_64    ? IMAGE_MACHINE_X86_64
		   : number == EM_AARCH64 ? IMAGE_MACHINE_AARCH64
								  : IMAGE_MACHINE_OTHER;
}

/* Ranges that would wrap are no ranges: nobody behind this has to think of it. */
static bool wraps(uint64_t start, uint64_t bytes)
{
	return bytes > UINT64_MAX - start;
}

static bool add_segment(struct image_facts *facts, const Elf64_Phdr *header)
{
	if (wraps(header->p_offset, header->p_filesz) || wraps(header->p_vaddr, header->p_filesz)) {
		return true;
	}
	if (header->p_type == PT_GNU_EH_FRAME) {
		facts->frame_header = (struct image_part){
			.offset = header->p_offset, .bytes = header->p_filesz, .address = header->p_vaddr};
	}
	const struct image_segment segment = {
		.offset = header->p_offset,
		.bytes = header->p_filesz,
		.address = header->p_vaddr,
		.is_executable = (header->p_flags & PF_X) != 0,
	};

	return header->p_type != PT_LOAD || VEC_PUSH(&facts->segments, segment);
}

static bool read_segments(const struct image_source *source, const Elf64_Ehdr *header,
	struct image_facts *facts, struct error *err)
{
	for (size_t i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;

		if (wraps(header->e_phoff, (i + 1) * sizeof(segment)) ||
			!read_at(source, header->e_phoff + i * sizeof(segment), &segment, sizeof(segment))) {
			return error_set(
				err, ERROR_UNSUPPORTED, "the file ends before its program header %zu", i);
		}
		if (!add_segment(facts, &segment)) {
			return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for program header %zu", i);
		}
	}
	return true;
}

/* Where section headers are, after the escapes for large numbers (System V ABI, "ELF Header"). */
struct sections {
	const struct image_source *source;
	uint64_t offset, count, names_index;
	char *names; /* owned, NUL-terminated */
	size_t names_len;
};

static bool find_sections(
	struct sections *sections, const struct image_source *source, const Elf64_Ehdr *header)
{
	Elf64_Shdr first;

	*sections = (struct sections){.source = source,
		.offset = header->e_shoff,
		.count = header->e_shnum,
		.names_index = header->e_shstrndx};
	if (header->e_shoff == 0 || header->e_shentsize != sizeof(first) ||
		!read_at(source, header->e_shoff, &first, sizeof(first))) {
		return false;
	}
	if (header->e_shnum == 0) {
		sections->count = first.sh_size;
	}
	if (header->e_shstrndx == SHN_XINDEX) {
		sections->names_index = first.sh_link;
	}
	return sections->count <= IMAGE_MAX_SECTIONS && sections->names_index < sections->count &&
		   !wraps(sections->offset, sections->count * sizeof(first));
}

static bool read_names(struct sections *sections)
{
	Elf64_Shdr header;

	if (!read_at(sections->source, sections->offset + sections->names_index * sizeof(header),
			&header, sizeof(header)) ||
		header.sh_size == 0 || header.sh_size > IMAGE_MAX_NAMES_BYTES) {
		return false;
	}
	sections->names = malloc((size_t)header.sh_size + 1);
	if (sections->names == NULL) {
		return false;
	}
	sections->names_len =
		image_source_read(sections->source, header.sh_offset, sections->names, header.sh_size);
	sections->names[sections->names_len] = '\0';
	return true;
}

/* A packed section says so in a header of its own (System V ABI, "Section Compression"). */
static struct image_part packed_part(const struct image_source *source, struct image_part part)
{
	Elf64_Chdr header;

	if (part.bytes < sizeof(header) || !read_at(source, part.offset, &header, sizeof(header))) {
		return (struct image_part){0};
	}
	if (header.ch_type != ELFCOMPRESS_ZLIB && header.ch_type != 2 /* ELFCOMPRESS_ZSTD */) {
		return (struct image_part){0};
	}
	part.packing = header.ch_type == ELFCOMPRESS_ZLIB ? IMAGE_PACKING_ZLIB : IMAGE_PACKING_ZSTD;
	part.offset += sizeof(header);
	part.bytes -= sizeof(header);
	part.unpacked_bytes = header.ch_size;
	return part;
}

static void take_section(
	const struct sections *sections, const Elf64_Shdr *header, struct image_facts *facts)
{
	if (header->sh_name >= sections->names_len || header->sh_type == SHT_NOBITS ||
		wraps(header->sh_offset, header->sh_size) || wraps(header->sh_addr, header->sh_size)) {
		return;
	}
	const char *name = sections->names + header->sh_name;
	const struct image_part part = {
		.offset = header->sh_offset, .bytes = header->sh_size, .address = header->sh_addr};
	bool is_packed = (header->sh_flags & SHF_COMPRESSED) != 0;

	if (strcmp(name, ".eh_frame") == 0 && !is_packed) {
		facts->frames = part;
	} else if (strcmp(name, ".eh_frame_hdr") == 0 && !is_packed && facts->frame_header.bytes == 0) {
		facts->frame_header = part;
	} else if (strcmp(name, ".debug_frame") == 0) {
		facts->debug_frames = is_packed ? packed_part(sections->source, part) : part;
	}
}

static void read_sections(
	const struct image_source *source, const Elf64_Ehdr *header, struct image_facts *facts)
{
	struct sections sections;
	Elf64_Shdr step[STEP_SECTIONS];

	if (!find_sections(&sections, source, header) || !read_names(&sections)) {
		return;
	}
	for (uint64_t i = 0; i < sections.count; i += STEP_SECTIONS) {
		size_t want =
			sections.count - i < STEP_SECTIONS ? (size_t)(sections.count - i) : STEP_SECTIONS;
		size_t len = image_source_read(
			source, sections.offset + i * sizeof(step[0]), step, want * sizeof(step[0]));

		for (size_t j = 0; j < len / sizeof(step[0]); j++) {
			take_section(&sections, &step[j], facts);
		}
	}
	free(sections.names);
}

bool image_elf_read(const struct image_source *source, struct image_facts *facts, struct error *err)
{
	Elf64_Ehdr header;

	if (!read_header(source, &header, err)) {
		return false;
	}
	facts->machine = machine_of(header.e_machine);
	facts->pointer_bytes = 8;
	if (!read_segments(source, &header, facts, err)) {
		return false;
	}
	read_sections(source, &header, facts);
	return true;
}
