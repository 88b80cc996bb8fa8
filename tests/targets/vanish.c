/*
 * vanish MODE MS [LIBRARY]: computes for MS of CPU time in stay(), after the file of its code has gone:
 *
 *   plain           nothing goes
 *   unlink          the program deletes itself
 *   replace         another file gets its name
 *   memory          it runs again from memory that never had a file (memfd_create(2))
 *   library         LIBRARY is loaded and deleted, and its function library_first computes
 *   slow-library    the same, but it is deleted 5 ms later
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "burn.h"

static NOINLINE void stay(unsigned ms)
{
	burn_ms(ms);
	KEEP_FRAME();
}

static int own_path(char path[4096])
{
	ssize_t len = readlink("/proc/self/exe", path, 4095);

	path[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static int replace(const char *path)
{
	char other[4200];

	snprintf(other, sizeof(other), "%s.new", path);
	int fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0755);

	return fd >= 0 && write(fd, "#!/bin/false\n", 13) == 13 && close(fd) == 0 &&
		   rename(other, path) == 0;
}

static int run_from_memory(const char *path, char *ms)
{
	struct stat status;
	char *const arguments[] = {(char *)"hidden", (char *)"plain", ms, NULL};
	int in = open(path, O_RDONLY), out = memfd_create("hidden", 0);

	if (in < 0 || out < 0 || fstat(in, &status) != 0 ||
		sendfile(out, in, NULL, (size_t)status.st_size) != status.st_size) {
		return 0;
	}
	fexecve(out, arguments, environ);
	return 0;
}

static int run_library(const char *path, unsigned ms, unsigned wait_us)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*run)(unsigned ms) = NULL;

	if (library == NULL) {
		return 0;
	}
	*(void **)&run = dlsym(library, "library_first");
	usleep(wait_us);
	if (run == NULL || unlink(path) != 0) {
		return 0;
	}
	run(ms);
	return 1;
}

static int run(const char *mode, char *ms, const char *library)
{
	char path[4096];

	if (strcmp(mode, "library") == 0) {
		return run_library(library, (unsigned)atoi(ms), 0);
	}
	if (strcmp(mode, "slow-library") == 0) {
		return run_library(library, (unsigned)atoi(ms), 5000);
	}
	if (strcmp(mode, "plain") != 0 && !own_path(path)) {
		return 0;
	}
	if ((strcmp(mode, "unlink") == 0 && unlink(path) != 0) ||
		(strcmp(mode, "replace") == 0 && !replace(path)) ||
		(strcmp(mode, "memory") == 0 && !run_from_memory(path, ms))) {
		return 0;
	}
	stay((unsigned)atoi(ms));
	return 1;
}

int main(int argc, char **argv)
{
	if (argc < 3 || !run(argv[1], argv[2], argc > 3 ? argv[3] : "")) {
		perror("vanish");
		return 1;
	}
	return 0;
}
