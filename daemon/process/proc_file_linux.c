#include "process/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ssize_t proc_file_read(int folder, const char *path, char *text, size_t bytes)
{
	text[0] = '\0';
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return -1;
	}
	ssize_t len = read(fd, text, bytes - 1);
	int failure = errno;
	close(fd);
	errno = failure;
	text[len > 0 ? len : 0] = '\0';
	return len;
}

const char *proc_file_stat(int folder, const char *path, char *text, size_t bytes)
{
	const char *bracket = proc_file_read(folder, path, text, bytes) > 0 ? strrchr(text, ')') : NULL;
	return bracket != NULL ? bracket + 1 : NULL;
}

bool proc_file_lives(const char *stat)
{
	return stat[0] == ' ' && stat[1] != 'Z' && stat[1] != 'X';
}
