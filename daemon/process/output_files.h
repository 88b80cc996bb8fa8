#ifndef PROCESS_OUTPUT_FILES_H
#define PROCESS_OUTPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/error.h"

/*
 * Where programs with stdio file write: <data-dir>/output/<started_unix_us>-<pid>/{stdout,stderr}, folders 0700, files 0600, made
 * exclusively, never through a symbolic link. The folder has another name until the pid is known. data_fd is the data folder's. Blocking; any thread.
 */
#define OUTPUT_FILES_FOLDER     "output"
#define OUTPUT_FILES_NAME_BYTES 48
#define OUTPUT_FILES_OUT        "stdout"
#define OUTPUT_FILES_ERR        "stderr"

/* Makes the folder and both files, open for appending, close-on-exec; the caller's. On failure nothing is left. */
bool output_files_create(
	int data_fd, char name[OUTPUT_FILES_NAME_BYTES], int fds[2], struct error *err);
/* Gives the folder its lasting name. */
bool output_files_rename(int data_fd, char name[OUTPUT_FILES_NAME_BYTES], uint64_t started_unix_us,
	pid_t pid, struct error *err);
/* For reading. -1: err. */
int output_files_open(int data_fd, const char *name, const char *file, struct error *err);
/* With everything in it. */
void output_files_remove(int data_fd, const char *name);
/*
 * What earlier daemons left: folders that never got their name, and those of which the process does not live and to which nothing was
 * written for LIMIT_OUTPUT_FILES_MS. Nobody else may work in the data folder.
 */
void output_files_clean(int data_fd);

#endif
