#ifndef PROCESS_PROC_FILE_H
#define PROCESS_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Small files of proc(5). folder: a descriptor that path is relative to, or AT_FDCWD. Any thread; blocking, allocates nothing. */

/* The file's beginning into text, with a NUL; as many bytes, at most bytes - 1. -1: errno, and text is empty. */
ssize_t proc_file_read(int folder, const char *path, char *text, size_t bytes);

/* Of a stat file (proc_pid_stat(5)) what stands behind the name, which may hold anything, from field 3 on: " S 1 …". In text; NULL: it is not there, or has no end. */
const char *proc_file_stat(int folder, const char *path, char *text, size_t bytes);
/* Of that: it runs, and is not a zombie. */
bool proc_file_lives(const char *stat);

#endif
