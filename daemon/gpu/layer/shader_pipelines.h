#ifndef GPU_LAYER_SHADER_PIPELINES_H
#define GPU_LAYER_SHADER_PIPELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/layer/handles.h"
#include "gpu/layer/shaders.h"
#include "protocol/gpu_wire.h"
#include "protocol/sha256.h"

/*
 * Pipelines, the code that they are made of, and lists of them, as long as anything has a reference. Part of the shaders of a process, whose lock is
 * held. kept: bytes of all code that is kept.
 */

/* What a module was made of; it has as many references as modules and stages are made of it. */
struct shader_code {
	size_t references, bytes;
	void *data;                  /* owned; NULL: it was not kept */
	char hash[SHA256_HEX_BYTES]; /* "" until it is asked for */
};

struct shader_entry {
	struct shader_code *code;
	const char *name;
	char entry[GPU_WIRE_ENTRY_BYTES];
};

/* It has a reference of its handle, of each command buffer that has bound it, and of a capture that uses it. */
struct shader_pipeline {
	struct handle handle;
	size_t references;
	bool is_used;           /* by the capture under way */
	const void *bound_last; /* by this recording, which has it in its list therefore */
	uint64_t bound_generation;
	size_t count;
	struct shader_entry stages[];
};

struct shader_pipelines {
	struct shader_pipeline **items; /* a reference of each */
	size_t len, capacity;
};

/* With one reference. NULL: memory is out. data NULL, or too much of it: it is not kept. */
struct shader_code *shader_code_create(size_t *kept, const void *data, size_t bytes);
/* NULL is fine. */
void shader_code_release(size_t *kept, struct shader_code *code);

/* With one reference, and room for so many entries. NULL: memory is out. */
struct shader_pipeline *shader_pipeline_create(size_t room);
/* Takes the code's reference. code NULL: it is not known, and is left out. */
void shader_pipeline_add(
	struct shader_pipeline *pipeline, const struct shader_stage *given, struct shader_code *code);
/* All of another's; NULL: none. */
void shader_pipeline_add_all(
	struct shader_pipeline *pipeline, const struct shader_pipeline *library);
void shader_pipeline_release(size_t *kept, struct shader_pipeline *pipeline);

/* Takes a reference. False: memory is out, its shaders are not seen. */
bool shader_pipelines_add(struct shader_pipelines *list, struct shader_pipeline *pipeline);
void shader_pipelines_clear(size_t *kept, struct shader_pipelines *list);
/* Its memory too. */
void shader_pipelines_finish(size_t *kept, struct shader_pipelines *list);

#endif
