#ifndef GPU_LAYER_FAULT_H
#define GPU_LAYER_FAULT_H

#include <stdbool.h>

#include "protocol/gpu_wire.h"

/* What went wrong, as the wire has it (protocol/gpu_wire.h). Caller-owned; zero is none. */
struct fault {
	const char *code; /* static */
	char text[GPU_WIRE_TEXT_BYTES];
};

/* Returns false. */
bool fault_set(struct fault *fault, const char *code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
