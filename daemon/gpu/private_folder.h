#ifndef GPU_PRIVATE_FOLDER_H
#define GPU_PRIVATE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/error.h"

/*
 * A folder of profd's own for one program: in $XDG_RUNTIME_DIR when that is ours alone and short, else in /tmp. It is in use as long as the daemon that made
 * it lives: that holds a lock on a file in it. What a killed daemon left has no such lock, and is removed by the next one. Any thread.
 */

#define PRIVATE_FOLDER_BYTES 64 /* of its path, to which a socket's name is added (unix(7): 108) */

/* Makes one, mode 0700. The descriptor holds the lock: owned, to be closed behind the folder's end. -1: path is "", and err says why. */
int private_folder_make(char path[PRIVATE_FOLDER_BYTES], struct error *err);
/* With all that is in it; what cannot be removed stays. "" is fine. */
void private_folder_remove(const char *path);
/* Removes those of ours, in either place, whose daemon is gone; how many. Blocking. */
size_t private_folder_sweep(void);

#endif
