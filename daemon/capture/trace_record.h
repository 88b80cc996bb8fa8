#ifndef CAPTURE_TRACE_RECORD_H
#define CAPTURE_TRACE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "capture/trace_shaders.h"
#include "gpu/gpu.h"

/*
 * What a record has of a GPU trace, beside what every capture has: an object whose members are those of docs/protocol.md. All of them are
 * there from the beginning, null as long as they are not known. Values are those of a foreign program, made text. Loop thread.
 */

/* What was asked for. Owned; NULL: memory is out. */
json_t *trace_record_create(const struct gpu_backend *backend, const struct gpu_range *range,
	uint64_t duration_ms, uint64_t timeout_ms);
/* Of a record that another daemon wrote, of any content: what is wrong in it is null. Owned; NULL when it is none of a GPU trace, or memory is out. */
json_t *trace_record_restore(const json_t *kept);

/* Who records, with what, on which device, and, once it has begun, how it counts. */
void trace_record_set_status(json_t *trace, const struct gpu_status *status, bool has_begun);
/* mono_us 0: not known. */
void trace_record_set_begin(json_t *trace, uint64_t first_frame, uint64_t mono_us);
/* The document, under its final name in folder; whatever else was an artifact is none any more. */
void trace_record_set_document(json_t *trace, const char *folder, const char *name, uint64_t bytes);
/* There is none. */
void trace_record_clear_document(json_t *trace);
/* Those that are in it. */
void trace_record_set_frames(json_t *trace, uint64_t first_frame, uint64_t last_frame);
/* Its writer had told of it, and of its frames: it is more than the next daemon could know. */
bool trace_record_is_told(const json_t *trace);
/* Its shaders, beside it; and their list alone. */
void trace_record_set_shaders(
	json_t *trace, const char *folder, const struct trace_shaders_counts *counts);
void trace_record_add_list(json_t *trace, const char *folder, uint64_t bytes);
/* Whether it was read to its end by who can. */
void trace_record_set_verified(json_t *trace, bool is_verified);

#endif
