#include "gate_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "protocol/gate.h"

_Noreturn void gate_fail(int fd, const char *stage, int errno_value, const char *format, ...)
{
	char line[GATE_LINE_BYTES];
	size_t used = (size_t)snprintf(line, sizeof(line), "failed %s %d ", stage, errno_value);
	size_t room = sizeof(line) - used - 1;
	va_list args;
	va_start(args, format);
	int wanted = vsnprintf(line + used, room, format, args);
	va_end(args);
	size_t end = used + (wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1);
	for (size_t i = used; i < end; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
			line[i] = '?';
		}
	}
	line[end++] = '\n';
	ssize_t sent = fd < 0 ? write(STDERR_FILENO, line, end) : send(fd, line, end, MSG_NOSIGNAL);
	(void)sent; /* nobody is left to be told */
	bool not_found = strcmp(stage, "program") == 0 && errno_value == ENOENT;
	_exit(not_found ? GATE_EXIT_NOT_FOUND : GATE_EXIT_CANNOT_RUN);
}

bool gate_number(const char *text, int base, unsigned long *value)
{
	char *end;
	errno = 0;
	*value = strtoul(text, &end, base);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

void gate_close_others(int fd)
{
	bool below = fd == 3 || syscall(SYS_close_range, 3u, (unsigned)fd - 1, 0u) == 0;
	if (below && syscall(SYS_close_range, (unsigned)fd + 1, ~0u, 0u) == 0) {
		return;
	}
	/* Before Linux 5.9, or refused by a filter. */
	struct rlimit limit;
	int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur
																			  : 65536;
	for (int other = 3; other < end; other++) {
		if (other != fd) {
			close(other);
		}
	}
}
