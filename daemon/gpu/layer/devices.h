#ifndef GPU_LAYER_DEVICES_H
#define GPU_LAYER_DEVICES_H

#include "gpu/layer/fault.h"
#include "gpu/layer/session.h"

/* Which GPU the program is to see, and which of its devices a start is for (protocol/gpu_pick.h). Part of the session, in whose state it is. */

/* The one that it is to see: PROFD_GPU_DEVICE as it was at the first instance. NULL: each. Borrowed for the process's life. Any thread, without the lock. */
const char *devices_wish(void);
/* An instance cannot have it: profd is told so, now and at each start, until another has it. Any thread, without the lock. */
void devices_refuse(const struct fault *fault);
void devices_accept(void);

/* NULL: it is none of this process's. The session's lock is held, here and below. */
const struct session_device *devices_find(const struct frame_counts *counts);
/* Which of the devices what waits, or was captured last, is for: is_left_out in their counts. Those beyond GPU_PICK_MOST are left out by any wish. */
void devices_mark(void);

#endif
