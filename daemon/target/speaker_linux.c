#include "target/speaker.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "process/proc_file.h"
#include "target/target.h"

#define STAT_BYTES 512

static bool lives(pid_t pid, pid_t tid)
{
	char path[PROC_PATH_BYTES], text[STAT_BYTES];
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	const char *stat = proc_file_stat(AT_FDCWD, path, text, sizeof(text));
	return stat != NULL && proc_file_lives(stat);
}

pid_t target_speaker(pid_t pid)
{
	pid_t *tids = NULL, found = pid;
	size_t count = 0;
	if (lives(pid, pid) || !target_threads(pid, &tids, &count, NULL)) {
		return pid;
	}
	for (size_t i = 0; i < count && found == pid; i++) {
		found = lives(pid, tids[i]) ? tids[i] : pid;
	}
	free(tids);
	return found;
}
