/*
 * What the program's children inherit. RenderDoc sets LD_PRELOAD and LD_LIBRARY_PATH of its process to what they were before itself, which
 * it takes from variables of its own launcher; without those they are empty, and a program behind `sh -c` or `env` would be recorded no
 * more. Both get back what this process was started with. This runs behind RenderDoc's own constructors, because this library needs it.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_BYTES                                                                          \
	(4 * 1024 *                                                                                    \
		1024) /* as many as are read: an exec takes no more (execve(2), one half of them for arguments) */
#define STEP_BYTES 65536

extern char **environ;

/* Ends with a NUL. Owned; NULL: it cannot be had. */
static char *read_start(size_t *len)
{
	char *text = NULL;
	ssize_t got = 1;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	*len = 0;
	while (fd >= 0 && got > 0 && *len < ENVIRONMENT_BYTES) {
		char *longer = realloc(text, *len + STEP_BYTES + 1);
		if (longer == NULL) {
			break;
		}
		text = longer;
		got = read(fd, text + *len, STEP_BYTES);
		*len += got > 0 ? (size_t)got : 0;
		text[*len] = '\0';
	}
	if (fd >= 0) {
		close(fd);
	}
	return text;
}

static bool is_of(const char *text, const char *name)
{
	size_t len = strlen(name);
	return strncmp(text, name, len) == 0 && text[len] == '=';
}

/* Not by setenv: shells have one of their own, which is not ready yet. */
static void put_back(const char *text, const char *name)
{
	for (char **at = environ; at != NULL && *at != NULL; at++) {
		if (is_of(*at, name) && strcmp(*at, text) != 0) {
			char *copy = strdup(text);
			*at = copy != NULL ? copy : *at;
		}
	}
}

__attribute__((constructor)) static void restore(void)
{
	size_t len = 0;
	char *text = read_start(&len);
	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		if (is_of(text + at, "LD_PRELOAD")) {
			put_back(text + at, "LD_PRELOAD");
		} else if (is_of(text + at, "LD_LIBRARY_PATH")) {
			put_back(text + at, "LD_LIBRARY_PATH");
		}
	}
	free(text);
}
