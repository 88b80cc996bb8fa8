#ifndef COMMANDS_PROGRAM_TRACE_H
#define COMMANDS_PROGRAM_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "commands/daemon.h"
#include "gpu/gpu.h"

/*
 * An armed program's own wishes to be recorded (client/gpu/profd_gpu.h): each is a StartGpuTrace of its build, frame_by manual, that nobody sent.
 * The build's, for its life; zero is none.
 */
struct program_trace {
	struct daemon *daemon;
	bool is_allowed;
	size_t count;                /* of wishes that were granted */
	struct process *process;     /* while it is served; NULL */
	struct gpu_program *program; /* the build holds it */
};

/* From now on the program is answered. program NULL: it is not armed. */
void program_trace_begin(
	struct program_trace *trace, struct process *process, struct gpu_program *program);
/* Before the build lets go of the program: whatever of it is left is refused. Idempotent. */
void program_trace_end(struct program_trace *trace);

#endif
