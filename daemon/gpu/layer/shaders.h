#ifndef GPU_LAYER_SHADERS_H
#define GPU_LAYER_SHADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The shaders of one process: what its modules were made of, which pipelines were made of them, and which of those its command buffers use.
 * Programs destroy a module as soon as its pipeline is made, record long before they submit, and ask for a capture later than either: so a
 * module's code is kept until nothing that could still be submitted uses it. Pure; any thread, one lock is inside. device: whatever tells
 * devices apart, because two of them may give the same handle.
 */
#define SHADERS_MODULE_BYTES                                                                       \
	((size_t)16 * 1024 * 1024)                   /* the code of a larger module is not kept */
#define SHADERS_BYTES ((size_t)64 * 1024 * 1024) /* of all that is kept; above it, no more is */

struct shaders;

/* Owned. NULL: memory is out. */
struct shaders *shaders_create(void);
void shaders_destroy(struct shaders *shaders);

/* The code is copied. */
void shaders_module_made(
	struct shaders *shaders, const void *device, uint64_t module, const void *code, size_t bytes);
void shaders_module_gone(struct shaders *shaders, const void *device, uint64_t module);

struct shader_stage {
	uint64_t module; /* 0: code is given in its place */
	const void *code;
	size_t bytes;
	const char *stage; /* static: the wire's name */
	const char *entry;
};

/* Made of these stages, and of those of other pipelines (libraries). */
void shaders_pipeline_made(struct shaders *shaders, const void *device, uint64_t pipeline,
	const struct shader_stage *stages, size_t count, const uint64_t *libraries,
	size_t library_count);
void shaders_pipeline_gone(struct shaders *shaders, const void *device, uint64_t pipeline);
/* With all that was made of it. */
void shaders_device_gone(struct shaders *shaders, const void *device);

/* Command buffers, as labels.h has them. */
void shaders_allocated(
	struct shaders *shaders, const void *device, uint64_t pool, const void *buffer);
void shaders_freed(struct shaders *shaders, const void *device, const void *buffer);
void shaders_pool_gone(struct shaders *shaders, const void *device, uint64_t pool);
void shaders_begun(struct shaders *shaders, const void *device, const void *buffer);
void shaders_bound(
	struct shaders *shaders, const void *device, const void *buffer, uint64_t pipeline);
/* What the secondary has bound by now is the primary's too. */
void shaders_join(
	struct shaders *shaders, const void *device, const void *primary, const void *secondary);

/* The buffer is submitted in a captured frame. */
void shaders_used(struct shaders *shaders, const void *device, const void *buffer);
/* A capture begins, or is over: nothing was used. */
void shaders_forget_used(struct shaders *shaders);

/* False: somebody is at work here for so long. A program may exit from a signal's handler in the middle of it: then nothing here may be called. */
bool shaders_are_free(struct shaders *shaders, unsigned wait_ms);

/* An entry point of a module that was used. Borrowed for the call. */
struct shader_use {
	const void *code;
	size_t bytes;
	const char *hash; /* SHA-256, in hexadecimal */
	const char *stage, *entry;
};

/* False: it was not taken. */
typedef bool (*shader_use_fn)(void *context, const struct shader_use *use);

/*
 * Calls take for each use, each once, those of one module (of equal code) one after the other; at most max of them. Returns how many modules
 * were left out: their code was not kept, or none of their uses was taken. take may not call anything here.
 */
uint64_t shaders_each_used(struct shaders *shaders, size_t max, shader_use_fn take, void *context);

#endif
