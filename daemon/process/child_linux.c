#include "process/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "process/proc_file.h"

static uint64_t micros(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

enum child_reaped child_reap(int pidfd, struct process_exit *end)
{
	siginfo_t info = {0};
	struct rusage usage = {0};
	long status;
	do {
		status = syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED | WNOHANG, &usage);
	} while (status != 0 && errno == EINTR);
	*end = (struct process_exit){.exit_code = -1};
	if (status != 0 || info.si_pid == 0) {
		return status != 0 ? CHILD_LOST : CHILD_NOT_YET;
	}
	if (info.si_code == CLD_EXITED) {
		end->exit_code = info.si_status;
	} else {
		end->exit_code = 0;
		end->was_signalled = true;
		end->signal = info.si_status;
		end->core_dumped = info.si_code == CLD_DUMPED;
	}
	end->user_us = micros(usage.ru_utime);
	end->system_us = micros(usage.ru_stime);
	end->max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
	return CHILD_REAPED;
}

static bool is_living_member(int proc, const char *pid, pid_t group)
{
	char path[64], text[512];
	int parent, its_group;
	int wanted = snprintf(path, sizeof(path), "%s/stat", pid);
	const char *stat = wanted > 0 && (size_t)wanted < sizeof(path)
						   ? proc_file_stat(proc, path, text, sizeof(text))
						   : NULL;
	return stat != NULL && sscanf(stat, " %*c %d %d", &parent, &its_group) == 2 &&
		   its_group == group && proc_file_lives(stat);
}

bool child_group_has_members(pid_t leader)
{
	DIR *folder = opendir("/proc");
	if (folder == NULL) {
		return false;
	}
	bool found = false;
	const struct dirent *entry;
	while (!found && (entry = readdir(folder)) != NULL) {
		bool is_process = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
		found = is_process && atoi(entry->d_name) != leader &&
				is_living_member(dirfd(folder), entry->d_name, leader);
	}
	closedir(folder);
	return found;
}
