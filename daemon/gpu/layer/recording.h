#ifndef GPU_LAYER_RECORDING_H
#define GPU_LAYER_RECORDING_H

#include <stdbool.h>

#include "gpu/layer/fault.h"
#include "gpu/layer/frames.h"

/* The one recording of this process, by RenderDoc, and what profd is told of it. Part of the session, whose lock is held. */

/* What frames_start_now or frames_before_submit said, done, and profd told of it. False: fault, and profd was told of that too. */
bool recording_begin(struct frame_counts *counts, void *instance, struct fault *fault);
bool recording_end(bool by_program, struct fault *fault);

/* What a call of the program comes to (frames.h) is done. */
void recording_take(enum frame_step step, struct frame_counts *counts, void *instance);

/* Ends it, whatever comes of it. */
void recording_save(void);

#endif
