#include "commands/process_cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void process_cursor(const struct process *process, char cursor[PROCESS_CURSOR_BYTES])
{
	snprintf(cursor, PROCESS_CURSOR_BYTES, "%" PRIu64 ".%d", process_started_unix_us(process),
		(int)process_pid(process));
}

bool process_is_cursor(const char *text)
{
	size_t start = strspn(text, "0123456789");
	size_t pid = text[start] == '.' ? strspn(text + start + 1, "0123456789") : 0;
	return start > 0 && pid > 0 && text[start + 1 + pid] == '\0';
}

struct process *process_after_cursor(struct daemon *daemon, const char *cursor)
{
	char other[PROCESS_CURSOR_BYTES];
	struct process *process = NULL;
	while ((process = processes_next(daemon->processes, process)) != NULL) {
		process_cursor(process, other);
		if (strcmp(cursor, other) == 0) {
			return processes_next(daemon->processes, process);
		}
	}
	uint64_t started_unix_us = strtoull(cursor, NULL, 10);
	while ((process = processes_next(daemon->processes, process)) != NULL &&
		   process_started_unix_us(process) <= started_unix_us) {
	}
	return process;
}
