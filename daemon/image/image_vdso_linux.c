#include "image/image_source.h"

#include <string.h>

#include <elf.h>
#include <sys/auxv.h>

#define VDSO_MAX_BYTES (256 * 1024)

/* In memory as it would be in a file (vdso(7)); its section headers are the last thing in it. 0: of no known form. */
static uint64_t bytes_of(const uint8_t *memory)
{
	if (memcmp(memory, ELFMAG, SELFMAG) != 0) {
		return 0;
	}
	if (memory[EI_CLASS] == ELFCLASS64) {
		Elf64_Ehdr header;

		memcpy(&header, memory, sizeof(header));
		return header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	}
	Elf32_Ehdr header;

	memcpy(&header, memory, sizeof(header));
	return (uint64_t)header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
}

bool image_source_vdso(struct image_source *source, struct error *err)
{
	const uint8_t *memory = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

	if (memory == NULL) {
		return error_set(err, ERROR_UNSUPPORTED, "this kernel gives no vDSO");
	}
	uint64_t bytes = bytes_of(memory);

	if (bytes == 0 || bytes > VDSO_MAX_BYTES) {
		return error_set(err, ERROR_UNSUPPORTED, "the vDSO has an unknown form");
	}
	*source = (struct image_source){.fd = -1, .memory = memory, .bytes = bytes};
	return true;
}
