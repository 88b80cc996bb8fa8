#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/error.h"

/*
 * The one seam to the file system for everything that profd writes. Folders are descriptors, names are single
 * components, nothing follows a symbolic link. Any thread; blocking.
 */

/* Creates (O_EXCL) a file 0600 in a folder, close-on-exec. -1: err names it. */
int files_create(int folder_fd, const char *name, struct error *err);
/* Opens a regular file for reading, close-on-exec; never blocks on a FIFO. -1: err names it. */
int files_open(int folder_fd, const char *name, struct error *err);
/* Makes a folder 0700 and opens it; an existing one is an error. -1: err. */
int files_make_folder(int parent_fd, const char *name, struct error *err);
/* Opens an absolute path to a folder that is ours (the last component is no symbolic link); -1: err says what is wrong and what
 * helps (bad_params: relative, missing, no folder; not_permitted: another user's). must_be_private: mode & 077 is refused too. */
int files_open_folder(const char *path, bool must_be_private, struct error *err);
/* mkdir -p with 0700 for what is missing, then files_open_folder. */
int files_open_or_make_folder(const char *path, struct error *err);
/* Writes all; on failure err (disk_full, io) and *written (may be NULL) bytes are in the file. */
bool files_write_all(int fd, const void *bytes, size_t len, size_t *written, struct error *err);
bool files_sync(int fd, struct error *err);
/* Within one folder; replaces. Then the folder is synced by files_sync(folder_fd). */
bool files_rename(int folder_fd, const char *from, const char *to, struct error *err);
/* As files_replace but without the syncs: whole for everyone who lives, not yet safe from a crash of the machine. */
bool files_put(int folder_fd, const char *name, const void *bytes, size_t len, struct error *err);
/* Writes name.tmp (one that was left behind is replaced), syncs, renames to name, syncs the folder. On failure name is as before. */
bool files_replace(
	int folder_fd, const char *name, const void *bytes, size_t len, struct error *err);
/* True when gone or never there. */
bool files_remove(int folder_fd, const char *name, struct error *err);
/* Removes a folder with everything in it (no links followed, one file system). */
bool files_remove_tree(int parent_fd, const char *name, struct error *err);
/* The whole file, NUL-terminated behind *len; files over max_bytes are an error. Owned (free). */
char *files_read(int folder_fd, const char *name, size_t max_bytes, size_t *len, struct error *err);

#endif
