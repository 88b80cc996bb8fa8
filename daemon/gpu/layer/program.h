#ifndef GPU_LAYER_PROGRAM_H
#define GPU_LAYER_PROGRAM_H

#include "gpu/layer/wish.h"

/*
 * What the program itself calls to be captured, through client/gpu/profd_gpu.h and profd_gpu.py. Programs are built with these names, so
 * that what a name means never changes. Any thread.
 */
#define PROGRAM_CALL __attribute__((visibility("default")))

/* The same numbers as in client/gpu/profd_gpu.h. */
enum program_status {
	PROGRAM_OK = 0,
	PROGRAM_NOT_ARMED = -1,
	PROGRAM_NO_DEVICE = -2,
	PROGRAM_BUSY = -3,
	PROGRAM_NOT_CAPTURING = -4,
	PROGRAM_REFUSED = -5,
	PROGRAM_NO_ANSWER = -6,
	PROGRAM_FAILED = -7,
};

/* Asks profd and waits for its answer, at most GPU_WIRE_ASK_MS; then begins on the calling thread. label: for people; NULL is none. */
PROGRAM_CALL int profd_gpu_layer_start(const char *label);
/* Ends on the calling thread what start began; the file is there then. */
PROGRAM_CALL int profd_gpu_layer_stop(void);
/* 0 once profd is gone. */
PROGRAM_CALL int profd_gpu_layer_is_armed(void);
/* Why the calling thread's last start or stop failed; "" when it did not. Borrowed until its next one. */
PROGRAM_CALL const char *profd_gpu_layer_error(void);

/* What profd says of it; the session's lock is held. wish NULL: what it says cannot be done, by fault. */
void program_granted(
	const struct gpu_wire_message *message, const struct wish *wish, const struct fault *fault);
void program_refused(const struct gpu_wire_message *message);
/* Profd stops what was granted and has not begun. */
void program_cancel(void);

#endif
