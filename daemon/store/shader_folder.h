#ifndef STORE_SHADER_FOLDER_H
#define STORE_SHADER_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/error.h"

/*
 * The shaders of a GPU trace, as files in a folder of their own in the capture's: HASH.spv, HASH.wgsl, HASH-1.wgsl, …, where HASH is 64
 * hexadecimal digits. What has another name is somebody's. Any thread; blocking; no link is followed.
 */

/* A module's, or a source's. */
bool shader_folder_owns(const char *file_name);
/* Calls look for each file that is ours, until one is false; that was the last one's answer. A folder that is none has none. */
bool shader_folder_each(int capture_fd, const char *name,
	bool (*look)(int folder_fd, const char *file_name, void *context), void *context);
/* Removes those that are ours, then the folder; one that holds something else, or that is none, stays. */
bool shader_folder_remove(int capture_fd, const char *name, struct error *err);
/* What ours take together. */
uint64_t shader_folder_bytes(int capture_fd, const char *name);

#endif
