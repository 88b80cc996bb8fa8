/*
 * late_library LIBRARY FUNCTION …: opens each library in turn, runs its function and closes it before the next is mapped. Prints
 * the addresses: they shall be the same, so that old and new can be confused. In place of a pair, =SOURCE DESTINATION writes one file over
 * another, whose inode stays.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "burn.h"

static NOINLINE int run_library(const char *path, const char *name)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*run)(unsigned ms) = NULL;

	if (library != NULL) {
		*(void **)&run = dlsym(library, name);
	}
	if (run == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	run(200);
	printf("%p\n", *(void **)&run);
	return dlclose(library);
}

static int overwrite(const char *source, const char *destination)
{
	static char bytes[1 << 20];
	FILE *from = fopen(source, "rb"), *to = fopen(destination, "wb");

	if (from == NULL || to == NULL) {
		perror(from == NULL ? source : destination);
		return 1;
	}
	size_t len = fread(bytes, 1, sizeof(bytes), from);
	int failed = len == sizeof(bytes) || fwrite(bytes, 1, len, to) != len;

	fclose(from);
	return fclose(to) != 0 || failed;
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		int failed = argv[i][0] == '=' ? overwrite(argv[i] + 1, argv[i + 1])
									   : run_library(argv[i], argv[i + 1]);

		if (failed) {
			return 1;
		}
	}
	return 0;
}
