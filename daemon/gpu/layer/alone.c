#include "gpu/layer/alone.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "process/proc_file.h"

#define PATH_BYTES 64
#define STAT_BYTES 512 /* what is before the state has fewer (proc_pid_stat(5)) */

static bool has_ended(long tid)
{
	char path[PATH_BYTES], text[STAT_BYTES];
	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", tid);
	const char *stat = proc_file_stat(AT_FDCWD, path, text, sizeof(text));
	return stat != NULL && !proc_file_lives(stat);
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
