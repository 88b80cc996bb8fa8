#ifndef GPU_PRIVATE_FOLDER_H
#define GPU_PRIVATE_FOLDER_H

#include <stdbool.h>

#include "protocol/error.h"

/* A folder of profd's own for one program: in $XDG_RUNTIME_DIR when that is ours alone and short, else in /tmp. */

#define PRIVATE_FOLDER_BYTES 64 /* of its path, to which a socket's name is added (unix(7): 108) */

/* Makes one, mode 0700. False: path is "", and err says why. */
bool private_folder_make(char path[PRIVATE_FOLDER_BYTES], struct error *err);
/* With all that is in it; what cannot be removed stays. "" is fine. */
void private_folder_remove(const char *path);

#endif
