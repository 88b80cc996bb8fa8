#ifndef COMMANDS_PROCESS_CURSOR_H
#define COMMANDS_PROCESS_CURSOR_H

#include <stdbool.h>

#include "commands/daemon.h"

/* Where a list of processes goes on: the time and the pid of the last one that was told, "1764471903123456.4711". */
#define PROCESS_CURSOR_BYTES 64

void process_cursor(const struct process *process, char cursor[PROCESS_CURSOR_BYTES]);
bool process_is_cursor(const char *text);
/* The process behind the cursor's; when that is forgotten, the first that was started later. NULL: none. */
struct process *process_after_cursor(struct daemon *daemon, const char *cursor);

#endif
