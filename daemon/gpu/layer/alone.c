#include "gpu/layer/alone.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 64
#define STAT_BYTES 512 /* what is before the state has fewer (proc_pid_stat(5)) */

/* The state is behind the name, which may hold anything. */
static bool has_ended(long tid)
{
	char path[PATH_BYTES], text[STAT_BYTES];
	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0) {
		close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
	const char *behind = strrchr(text, ')');
	return behind != NULL && (strncmp(behind, ") Z", 3) == 0 || strncmp(behind, ") X", 3) == 0);
}

static unsigned count_living(DIR *folder)
{
	unsigned living = 0;
	const struct dirent *entry;
	while ((entry = readdir(folder)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);
		living += tid > 0 && !has_ended(tid);
	}
	return living;
}

bool alone_in_process(void)
{
	DIR *folder = has_ended(getpid()) ? opendir("/proc/self/task") : NULL;
	if (folder == NULL) {
		return false;
	}
	unsigned living = count_living(folder);
	closedir(folder);
	return living == 1;
}
