#include "analyzer/symbol/elf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gelf.h>
#include <libelf.h>

#define MAX_SEGMENTS    1024
#define MAX_NOTES_BYTES (64 * 1024)

static bool add_segments(struct elf_image *image, Elf *elf)
{
	size_t count = 0;

	if (elf_getphdrnum(elf, &count) != 0) {
		return true;
	}
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD) {
			continue;
		}
		const struct elf_segment segment = {
			.file_offset = header.p_offset,
			.file_bytes = header.p_filesz,
			.address = header.p_vaddr,
			.is_executable = (header.p_flags & PF_X) != 0,
		};

		if (!VEC_PUSH(&image->segments, segment)) {
			return false;
		}
	}
	return true;
}

/* Names were looked for in it: tables that cannot be are not the same as none. */
static bool is_torn(const struct elf_image *image, const struct elf_section *section, size_t count)
{
	bool is_outside = section->file_offset > image->source.bytes ||
					  section->bytes > image->source.bytes - section->file_offset;
	bool is_table = section->type == SHT_SYMTAB || section->type == SHT_DYNSYM;

	return (section->type != SHT_NULL && section->type != SHT_NOBITS && is_outside) ||
		   (is_table && section->link >= count);
}

static bool add_sections(struct elf_image *image, Elf *elf, const GElf_Ehdr *file)
{
	size_t count = 0;
	bool is_known = elf_getshdrnum(elf, &count) == 0, is_empty = true;

	image->is_broken =
		file->e_shoff != 0 && (!is_known || count == 0 ||
								  file->e_shentsize != gelf_fsize(elf, ELF_T_SHDR, 1, EV_CURRENT));
	if (!is_known) {
		return true;
	}
	for (size_t i = 0; i < count && i < ELF_MAX_SECTIONS; i++) {
		Elf_Scn *scn = elf_getscn(elf, i);
		GElf_Shdr header = {0};
		struct elf_section section = {0};

		if (scn != NULL && gelf_getshdr(scn, &header) != NULL) {
			section = (struct elf_section){
				.file_offset = header.sh_offset,
				.bytes = header.sh_size,
				.address = header.sh_addr,
				.type = header.sh_type,
				.link = header.sh_link,
				.is_code = (header.sh_flags & SHF_ALLOC) && (header.sh_flags & SHF_EXECINSTR),
			};
			image->is_broken |= is_torn(image, &section, count);
		} else {
			image->is_broken = true;
		}
		is_empty &= section.type == SHT_NULL;
		if (!VEC_PUSH(&image->sections, section)) {
			return false;
		}
	}
	image->is_broken |= count > 1 && is_empty;
	return true;
}

/* One area of notes: name size, description size, type, both padded to 4 bytes. */
static bool find_build_id(struct elf_image *image, const uint8_t *notes, size_t len)
{
	size_t at = 0;

	while (len - at >= 12) {
		uint32_t words[3];

		memcpy(words, notes + at, sizeof(words));
		at += sizeof(words);
		uint64_t name_bytes = ((uint64_t)words[0] + 3) & ~3ull;
		uint64_t id_bytes = ((uint64_t)words[1] + 3) & ~3ull;

		if (name_bytes > len - at || id_bytes > len - at - name_bytes) {
			return false;
		}
		if (words[2] == NT_GNU_BUILD_ID && words[0] == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
			words[1] > 0 && words[1] <= ELF_BUILD_ID_BYTES) {
			memcpy(image->build_id, notes + at + name_bytes, words[1]);
			image->build_id_bytes = words[1];
			return true;
		}
		at += (size_t)(name_bytes + id_bytes);
	}
	return false;
}

static void read_build_id(struct elf_image *image, Elf *elf)
{
	static const size_t room = MAX_NOTES_BYTES;
	uint8_t *notes = malloc(room);
	size_t count = 0;
	bool found = false;

	if (elf_getphdrnum(elf, &count) != 0) {
		count = 0;
	}
	for (size_t i = 0; notes != NULL && !found && i < count && i < MAX_SEGMENTS; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) != NULL && header.p_type == PT_NOTE) {
			size_t len = header.p_filesz < room ? (size_t)header.p_filesz : room;

			found = find_build_id(
				image, notes, image_source_read(&image->source, header.p_offset, notes, len));
		}
	}
	free(notes);
}

/* libelf reads the headers, whatever their class is; it never reads a whole section for us. */
static bool read_headers(struct elf_image *image, Elf *elf)
{
	GElf_Ehdr header;

	if (elf == NULL || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL ||
		header.e_ident[EI_DATA] != ELFDATA2LSB) {
		return false;
	}
	image->is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
	image->machine = header.e_machine;
	if (!add_segments(image, elf) || !add_sections(image, elf, &header)) {
		return false;
	}
	read_build_id(image, elf);
	return true;
}

static Elf *begin(const struct image_source *source)
{
	if (elf_version(EV_CURRENT) == EV_NONE) {
		return NULL;
	}
	if (source->fd >= 0) {
		return elf_begin(source->fd, ELF_C_READ, NULL);
	}
	return elf_memory((char *)(uintptr_t)source->memory, (size_t)source->bytes);
}

bool elf_image_open(struct elf_image *image, struct image_source source)
{
	struct stat status;

	*image = (struct elf_image){.source = source};
	if (source.fd >= 0) {
		if (fstat(source.fd, &status) != 0 || !S_ISREG(status.st_mode)) {
			elf_image_close(image);
			return false;
		}
		image->source.bytes = (uint64_t)status.st_size;
	}
	Elf *elf = begin(&image->source);
	bool done = read_headers(image, elf);

	elf_end(elf);
	if (!done) {
		elf_image_close(image);
	}
	return done;
}

void elf_image_close(struct elf_image *image)
{
	VEC_FINISH(&image->segments);
	VEC_FINISH(&image->sections);
	image_source_close(&image->source);
	*image = (struct elf_image){.source = {.fd = -1}};
}

bool elf_address(const struct elf_image *image, uint64_t file_offset, uint64_t *address)
{
	const struct elf_segment *found = NULL;

	for (size_t i = 0; i < image->segments.len; i++) {
		const struct elf_segment *segment = &image->segments.items[i];

		if (file_offset < segment->file_offset ||
			file_offset - segment->file_offset >= segment->file_bytes) {
			continue;
		}
		if (found == NULL || (segment->is_executable && !found->is_executable)) {
			found = segment;
		}
	}
	if (found == NULL) {
		return false;
	}
	*address = file_offset - found->file_offset + found->address;
	return true;
}

const struct elf_section *elf_section(const struct elf_image *image, uint32_t type)
{
	for (size_t i = 0; i < image->sections.len; i++) {
		if (image->sections.items[i].type == type) {
			return &image->sections.items[i];
		}
	}
	return NULL;
}
