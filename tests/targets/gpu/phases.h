#ifndef TARGETS_GPU_PHASES_H
#define TARGETS_GPU_PHASES_H

#include <stdbool.h>

/*
 * Phases of its own that gpu_frames.c, or gl_frames.c, records through client/gpu/profd_gpu.h. A list is words "start=FRAME" and "stop=FRAME", separated by commas, in the
 * order of their calls: starts before that frame's submit, stops behind it; "start=early" before there is an instance. Each call says on the standard
 * output what came of it: "own start 2: 0".
 */
void phases_early(const char *list);
/* is_behind: the frame was submitted and has ended. on_thread: each call on a new thread, which is waited for. */
void phases_run(const char *list, unsigned frame, bool is_behind, bool on_thread);

/* For programs that have this one as a library: called where phases_run is. NULL: not called. */
extern void (*phases_hook)(unsigned frame, int is_behind);

#endif
