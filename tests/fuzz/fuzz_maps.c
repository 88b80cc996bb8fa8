/*
 * The reader of /proc/PID/maps. Its numbers are the kernel's, but a name is whoever's: the kernel itself writes the
 * line, of a mapping in this process whose file is called as the fuzzer wants. It is at an address below all others,
 * so that only the first line is read.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/target.h"

#define NAME_BYTES  249 /* the most that memfd_create(2) takes */
#define PLACE       ((void *)0x10000)
#define PLACE_BYTES 0x3000
#define FILE_OFFSET 0x2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct expected {
	char path[NAME_BYTES + 16];
	struct stat status;
	int protection;
	bool found;
};

static bool compare(void *context, const struct target_mapping *mapping)
{
	struct expected *expected = context;
	const struct stat *status = &expected->status;
	if (mapping->start != (uintptr_t)PLACE || mapping->length != PLACE_BYTES ||
		mapping->file_offset != FILE_OFFSET || mapping->inode != status->st_ino ||
		makedev(mapping->device_major, mapping->device_minor) != status->st_dev ||
		mapping->protection != (uint32_t)expected->protection ||
		strcmp(mapping->path, expected->path) != 0) {
		fprintf(stderr, "\"%s\" instead of \"%s\"\n", mapping->path, expected->path);
		abort();
	}
	expected->found = true;
	return false;
}

/* maps tells a line end in a name as \012 and a backslash as itself, so that the two cannot be told apart. */
static void expect_path(struct expected *expected, const char *name)
{
	char *out = expected->path + sprintf(expected->path, "/memfd:");
	while (*name != '\0') {
		bool is_line_end = strncmp(name, "\\012", 4) == 0;
		*out++ = is_line_end ? '\n' : *name;
		name += is_line_end ? 4 : 1;
	}
	*out = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const int protections[] = {
		PROT_READ, PROT_READ | PROT_EXEC, PROT_NONE, PROT_READ | PROT_WRITE};
	char name[NAME_BYTES + 1] = "";
	if (size < 1) {
		return 0;
	}
	size_t len = size - 1 < NAME_BYTES ? size - 1 : NAME_BYTES;
	memcpy(name, data + 1, len);
	struct expected expected = {.protection = protections[data[0] % 4]};
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &expected.status) != 0 ||
		mmap(PLACE, PLACE_BYTES, expected.protection, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
			FILE_OFFSET) != PLACE) {
		abort();
	}
	struct error err;
	expect_path(&expected, name);
	if (!target_mappings(getpid(), compare, &expected, &err) || !expected.found) {
		abort();
	}
	munmap(PLACE, PLACE_BYTES);
	close(fd);
	return 0;
}
