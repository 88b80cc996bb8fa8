#ifndef TARGETS_GPU_OPTIONS_H
#define TARGETS_GPU_OPTIONS_H

#include <stdbool.h>

/*
 * What gpu_frames.c is asked for:
 *
 *   gpu_frames [--frames N] [--frame-ms MS] [--no-labels] [--compute-only] [--submit2] [--every-extension]
 *              [--exit-at FRAME]   exit(0) before this frame, nothing destroyed
 *              [--rounds N]        all of it N times, from the instance to its end
 *              [--functions]       prints which functions the device has
 *              [--forks]           then a fork does it once more
 *              [--first-thread-ends]   what follows is another thread's
 *              [--fill FILE]       the compute shader: SPIR-V with the interface of fill.comp
 *              [--own-phases LIST] starts and stops of its own (gpu/phases.h), [--own-thread] on threads of their own
 *   gpu_frames --idle-submits N --rate PER_SECOND    submits one empty command buffer, and prints what that cost (0: without a pause)
 */
struct options {
	unsigned frames, frame_ms, exit_at, idle_submits, rate, rounds;
	const char *own_phases; /* NULL: none */
	const char *fill;       /* NULL: fill.comp */
	bool own_thread, first_thread_ends;
	bool no_labels, compute_only, submit2, every_extension, forks, functions;
};

/* Ends the program with 2 when there is one that it does not know. */
void options_read(char **argv, struct options *options);

#endif
