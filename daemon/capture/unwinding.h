#ifndef CAPTURE_UNWINDING_H
#define CAPTURE_UNWINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/codes.h"
#include "sampler/sampler.h"

/*
 * From the registers and the copied piece of stack of a sample to its user frames: one capture's unwinder, and what is mapped in its process. Made
 * by the thread that starts the capture, then used by its sampling thread alone.
 */
struct unwinding;

#define UNWINDING_FRAMES_DEFAULT 1024

struct unwinding_options {
	struct codes *codes;    /* a reference is taken */
	size_t max_frames;      /* of a stack; 0: the default */
	bool no_frame_pointers; /* by call-frame information alone */
	bool stitches;          /* stacks that are cut are completed where that is certain */
};

/* NULL: memory is out, or this machine is not known (unsupported); err says which. */
struct unwinding *unwinding_create(const struct unwinding_options *options, struct error *err);
void unwinding_destroy(struct unwinding *unwinding);

/* An executable mapping of an image (from 1 upwards) of a kind (enum journal_image_kind); fd: its file, borrowed, or -1. */
void unwinding_map(struct unwinding *unwinding, const struct sampler_mapping *mapping,
	uint32_t image, uint64_t kind, int fd);
/* The process runs another program. */
void unwinding_exec(struct unwinding *unwinding);

struct unwinding_stack {
	const uint64_t *frames;  /* innermost first; borrowed until the next walk */
	const uint8_t *is_exact; /* no return address: it was interrupted there */
	size_t count;
	uint64_t end; /* enum journal_stack_end */
	/* From this frame on it is not of this sample: the callers that the frame before it has always had. count: nothing was stitched. */
	size_t stitched_from;
};

/* Allocates, formats and locks nothing where all code was seen before. */
void unwinding_walk(struct unwinding *unwinding, const struct sampler_sample *sample,
	struct unwinding_stack *stack);
/* A complete stack that was not met before, as unwinding_walk gave it: its callers are remembered. */
void unwinding_learn(struct unwinding *unwinding, const struct unwinding_stack *stack);
/* An address means something else now. */
void unwinding_forget(struct unwinding *unwinding);
/* Too many stacks were longer than what is copied of them. */
bool unwinding_wants_more(const struct unwinding *unwinding);

#endif
