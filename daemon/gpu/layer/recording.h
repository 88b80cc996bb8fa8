#ifndef GPU_LAYER_RECORDING_H
#define GPU_LAYER_RECORDING_H

#include <stdbool.h>

#include "gpu/layer/fault.h"
#include "gpu/layer/frames.h"
#include "gpu/layer/report.h"

/* The one recording of this process, by RenderDoc, and what profd is told of it. Part of the session, whose lock is held. */

/* What frames_start_now or frames_before_submit said, done, and profd told of it. False: fault, and profd was told of that too. */
bool recording_begin(struct frame_counts *counts, void *instance, struct fault *fault);
bool recording_end(enum recording_ender by, struct fault *fault);

/* RenderDoc waits for the device when it ends. False: fault, the device cannot come to its end, not even after a moment for other threads when waits. */
bool recording_can_end(bool waits, struct fault *fault);

void recording_take(enum frame_step step, struct frame_counts *counts, void *instance);
/* Ends what has to end and could not where it should have. is_next: the next frame is about to be submitted, and will be in it too. */
void recording_end_due(const struct frame_counts *counts, bool is_next);

/* It was stopped, and the program makes no call. False: it cannot end yet. */
bool recording_end_now(void);

/* Ends it because its device, window or program does: what can be written is. */
void recording_save(enum recording_ender by);

#endif
