/*
 * late_library LIBRARY FUNCTION …: opens each library in turn, runs its function and closes it before the next is mapped. Prints
 * the addresses: they shall be the same, so that old and new can be confused.
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

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (run_library(argv[i], argv[i + 1]) != 0) {
			return 1;
		}
	}
	return 0;
}
