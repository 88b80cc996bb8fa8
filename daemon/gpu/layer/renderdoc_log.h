#ifndef GPU_LAYER_RENDERDOC_LOG_H
#define GPU_LAYER_RENDERDOC_LOG_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu/layer/fault.h"

/*
 * The descriptor to which RenderDoc writes its log, as long as the process lives. A program that closes descriptors which it did not open (closefrom) closes
 * it too; RenderDoc does not notice, and what is opened next in its place gets the log's lines: its own document, which is broken then, or the
 * program's files. Not thread-safe: the session's lock is around it.
 */
struct renderdoc_log {
	int fd; /* -1: not known */
	dev_t device;
	ino_t inode;
	char path[GPU_WIRE_NAME_BYTES];
};

/* Looks for it among the process's descriptors. */
void renderdoc_log_find(struct renderdoc_log *log);

/* Where the place is free, the log gets it again. False: another file has it (descriptor_closed). */
bool renderdoc_log_mend(struct renderdoc_log *log, struct fault *fault);

#endif
