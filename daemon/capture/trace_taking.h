#ifndef CAPTURE_TRACE_TAKING_H
#define CAPTURE_TRACE_TAKING_H

#include <stdint.h>

#include "gpu/gpu.h"
#include "protocol/error.h"

struct capture;

/* What becomes of a GPU trace once its program has said that there is a document, or that there is none. Loop thread. */

/* The document that tracing->document_path names, and its shaders, are looked at and get their final names; then it is read (trace_verifying.h), and the
 * capture ends. */
void trace_taking_begin(struct capture *capture);
/* There is none: what is temporary goes, and the capture ends. */
void trace_taking_fail(struct capture *capture, const struct error *err);

/* Of the frames that were asked for; 0: no number of them was. Pure. */
uint64_t trace_taking_frames_asked(const struct gpu_range *range);
/* Of the shaders that the worker has taken: what is missing. */
void trace_taking_warn_of_shaders(struct capture *capture);

#endif
