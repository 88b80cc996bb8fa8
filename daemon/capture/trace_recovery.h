#ifndef CAPTURE_TRACE_RECOVERY_H
#define CAPTURE_TRACE_RECOVERY_H

#include <stdbool.h>

#include "protocol/error.h"

struct capture;

/*
 * GPU traces that another daemon left. The program that was recorded may live on, and writes its document although nobody asks for it any more: it is waited
 * for, looked at and read as any other. What nobody has said to be whole has to be read to be believed. Loop thread.
 */

/* Its turn has come, and its folder is open: it ends by itself, in a later turn of the loop. False: err, and nothing was begun. */
bool trace_recovery_begin(struct capture *capture, struct error *err);
/* Of a stop for that reason: at the daemon's end one that waits for its program is left to the next daemon. */
void trace_recovery_hasten(struct capture *capture, const char *reason);

#endif
