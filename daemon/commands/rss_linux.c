#include "commands/rss.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line "Name:   123 kB" of /proc/PID/status (proc(5)). */
static uint64_t line_bytes(const char *status, const char *name)
{
	const char *line = strstr(status, name);
	return line == NULL ? 0 : strtoull(line + strlen(name), NULL, 10) * 1024;
}

bool rss_read(struct rss *rss)
{
	char status[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t len = read(fd, status, sizeof(status) - 1);
	close(fd);
	if (len <= 0) {
		return false;
	}
	status[len] = '\0';
	rss->resident_bytes = line_bytes(status, "\nVmRSS:");
	rss->anonymous_bytes = line_bytes(status, "\nRssAnon:");
	return true;
}
