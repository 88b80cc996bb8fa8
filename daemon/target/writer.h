#ifndef TARGET_WRITER_H
#define TARGET_WRITER_H

#include <stdbool.h>
#include <sys/types.h>

/* Who may be at work on a file: what may be read of a process about that. writer_linux.c. Any thread. */

/* Is this its program's file, as it was named when the program began? */
bool writer_runs(pid_t pid, const char *path);
/* Has it opened that file for writing? False too when that cannot be known. */
bool writer_has_open(pid_t pid, dev_t device, ino_t inode);

#endif
