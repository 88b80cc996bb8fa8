#include "image/image.h"

#include <string.h>

#include <elf.h>
#include <sys/auxv.h>

#define VDSO_MAX_BYTES (256 * 1024)

/* In memory as it would be in a file (vdso(7)); its section headers are the last thing in it. */
struct image *image_open_vdso(struct error *err)
{
	const uint8_t *memory = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;

	if (memory == NULL) {
		error_set(err, ERROR_UNSUPPORTED, "this kernel gives no vDSO");
		return NULL;
	}
	memcpy(&header, memory, sizeof(header));
	uint64_t bytes = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;

	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
		bytes > VDSO_MAX_BYTES) {
		error_set(err, ERROR_UNSUPPORTED, "the vDSO has an unknown form");
		return NULL;
	}
	return image_open_memory(memory, (size_t)bytes, err);
}
