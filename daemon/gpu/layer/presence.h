#ifndef GPU_LAYER_PRESENCE_H
#define GPU_LAYER_PRESENCE_H

#include <stdbool.h>

#include "gpu/layer/session.h"

/* This process at profd: from its hello to its exit, where what is recorded is saved. Part of the session. Any thread; the first two without the lock. */

/* The first instance, or context, is being made. below: the code that this layer passes calls to, one for each layer and the driver's end. */
void presence_hello(enum session_api api, const void *const *below, unsigned count);

/* A device is about to be made: waits for profd's first word, so that no frame is missed. */
void presence_wait_for_greeting(void);

/* RenderDoc and the driver are there by now: what is done at the exit is done before theirs, because later handlers run earlier. The lock is held. */
void presence_watch_exit(void);

/* Another exit handler was registered with add, which is a __cxa_atexit: ours is to run before it. Without the lock, or with it. */
void presence_stay_first(int (*add)(void (*handler)(void *), void *argument, void *dso));

/* The program has closed the connection: makes another, and says there what was said. False: there is none. The lock is held. */
bool presence_renew(void);

#endif
