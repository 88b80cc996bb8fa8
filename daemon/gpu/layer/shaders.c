#include "gpu/layer/shaders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/layer/handles.h"
#include "gpu/layer/shader_pipelines.h"
#include "gpu/layer/shader_uses.h"

#define BOUND_LATELY 16 /* pipelines of a recording that are looked through */

struct module {
	struct handle handle;
	struct shader_code *code;
};

struct recording {
	struct handle handle; /* of a command buffer */
	uint64_t pool;
	uint64_t generation; /* of its recording, among all of the process */
	struct shader_pipelines bound;
};

struct shaders {
	pthread_mutex_t lock;
	size_t bytes; /* of all code that is kept */
	uint64_t generations;
	struct handles modules, pipelines, recordings;
	struct shader_pipelines used;
};

/* handles_release_fn: the context is the shaders. */
static bool release_module(void *context, struct handle *handle)
{
	struct shaders *shaders = context;
	struct module *module = (struct module *)handle;
	shader_code_release(&shaders->bytes, module->code);
	free(module);
	return true;
}

static bool release_pipeline(void *context, struct handle *handle)
{
	struct shaders *shaders = context;
	shader_pipeline_release(&shaders->bytes, (struct shader_pipeline *)handle);
	return true;
}

static bool release_recording(void *context, struct handle *handle)
{
	struct shaders *shaders = context;
	struct recording *recording = (struct recording *)handle;
	shader_pipelines_finish(&shaders->bytes, &recording->bound);
	free(recording);
	return true;
}

/* Of all devices when it is NULL. */
static void release_device(struct shaders *shaders, const void *device)
{
	handles_release(&shaders->recordings, device, release_recording, shaders);
	handles_release(&shaders->pipelines, device, release_pipeline, shaders);
	handles_release(&shaders->modules, device, release_module, shaders);
}

static void release_one(struct shaders *shaders, struct handles *handles,
	handles_release_fn release, const void *device, uint64_t number)
{
	pthread_mutex_lock(&shaders->lock);
	struct handle *handle = handles_take_out(handles, device, number);
	if (handle != NULL) {
		release(shaders, handle);
	}
	pthread_mutex_unlock(&shaders->lock);
}

struct shaders *shaders_create(void)
{
	struct shaders *shaders = calloc(1, sizeof(*shaders));
	if (shaders != NULL) {
		pthread_mutex_init(&shaders->lock, NULL);
	}
	return shaders;
}

void shaders_destroy(struct shaders *shaders)
{
	if (shaders == NULL) {
		return;
	}
	shader_pipelines_finish(&shaders->bytes, &shaders->used);
	release_device(shaders, NULL);
	pthread_mutex_destroy(&shaders->lock);
	free(shaders);
}

void shaders_device_gone(struct shaders *shaders, const void *device)
{
	pthread_mutex_lock(&shaders->lock);
	release_device(shaders, device);
	pthread_mutex_unlock(&shaders->lock);
}

/* Modules and pipelines. */

void shaders_module_made(
	struct shaders *shaders, const void *device, uint64_t handle, const void *code, size_t bytes)
{
	struct module *module = calloc(1, sizeof(*module));
	if (module == NULL) {
		return;
	}
	pthread_mutex_lock(&shaders->lock);
	module->code = shader_code_create(&shaders->bytes, code, bytes);
	handles_add(&shaders->modules, &module->handle, device, handle);
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_module_gone(struct shaders *shaders, const void *device, uint64_t module)
{
	release_one(shaders, &shaders->modules, release_module, device, module);
}

/* The new reference of a stage; NULL: its code is not known. */
static struct shader_code *code_of(
	struct shaders *shaders, const void *device, const struct shader_stage *given)
{
	if (given->module == 0) {
		return given->code != NULL ? shader_code_create(&shaders->bytes, given->code, given->bytes)
								   : NULL;
	}
	struct module *module = handles_find(&shaders->modules, device, given->module);
	if (module == NULL || module->code == NULL) {
		return NULL;
	}
	module->code->references++;
	return module->code;
}

static size_t count_of(
	struct shaders *shaders, const void *device, const uint64_t *libraries, size_t library_count)
{
	size_t count = 0;
	for (size_t i = 0; i < library_count; i++) {
		const struct shader_pipeline *library =
			handles_find(&shaders->pipelines, device, libraries[i]);
		count += library != NULL ? library->count : 0;
	}
	return count;
}

void shaders_pipeline_made(struct shaders *shaders, const void *device, uint64_t handle,
	const struct shader_stage *stages, size_t count, const uint64_t *libraries,
	size_t library_count)
{
	pthread_mutex_lock(&shaders->lock);
	size_t room = count + count_of(shaders, device, libraries, library_count);
	struct shader_pipeline *pipeline = shader_pipeline_create(room);
	if (pipeline != NULL) {
		for (size_t i = 0; i < count; i++) {
			shader_pipeline_add(pipeline, &stages[i], code_of(shaders, device, &stages[i]));
		}
		for (size_t i = 0; i < library_count; i++) {
			shader_pipeline_add_all(
				pipeline, handles_find(&shaders->pipelines, device, libraries[i]));
		}
		handles_add(&shaders->pipelines, &pipeline->handle, device, handle);
	}
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_pipeline_gone(struct shaders *shaders, const void *device, uint64_t pipeline)
{
	release_one(shaders, &shaders->pipelines, release_pipeline, device, pipeline);
}

/* Command buffers. */

void shaders_allocated(
	struct shaders *shaders, const void *device, uint64_t pool, const void *buffer)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	if (recording == NULL) {
		return;
	}
	shaders_freed(shaders, device, buffer);
	recording->pool = pool;
	pthread_mutex_lock(&shaders->lock);
	recording->generation = ++shaders->generations;
	handles_add(&shaders->recordings, &recording->handle, device, handles_number(buffer));
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_freed(struct shaders *shaders, const void *device, const void *buffer)
{
	release_one(shaders, &shaders->recordings, release_recording, device, handles_number(buffer));
}

struct pool {
	struct shaders *shaders;
	uint64_t handle;
};

static bool release_in_pool(void *context, struct handle *handle)
{
	const struct pool *pool = context;
	bool is_in_it = ((struct recording *)handle)->pool == pool->handle;
	return is_in_it && release_recording(pool->shaders, handle);
}

void shaders_pool_gone(struct shaders *shaders, const void *device, uint64_t handle)
{
	struct pool pool = {shaders, handle};
	pthread_mutex_lock(&shaders->lock);
	handles_release(&shaders->recordings, device, release_in_pool, &pool);
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_begun(struct shaders *shaders, const void *device, const void *buffer)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *recording =
		handles_find(&shaders->recordings, device, handles_number(buffer));
	if (recording != NULL) {
		shader_pipelines_clear(&shaders->bytes, &recording->bound);
		recording->generation = ++shaders->generations;
	}
	pthread_mutex_unlock(&shaders->lock);
}

/* Once, but where several threads record with the same pipelines at the same time: then some may be in a list again. */
static void bind(struct recording *recording, struct shader_pipeline *pipeline)
{
	bool is_known =
		pipeline->bound_last == recording && pipeline->bound_generation == recording->generation;
	size_t len = recording->bound.len, lately = len < BOUND_LATELY ? len : BOUND_LATELY;
	for (size_t i = 1; !is_known && i <= lately; i++) {
		is_known = recording->bound.items[len - i] == pipeline;
	}
	if (is_known || shader_pipelines_add(&recording->bound, pipeline)) {
		pipeline->bound_last = recording;
		pipeline->bound_generation = recording->generation;
	}
}

void shaders_bound(struct shaders *shaders, const void *device, const void *buffer, uint64_t handle)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *recording =
		handles_find(&shaders->recordings, device, handles_number(buffer));
	struct shader_pipeline *pipeline = handles_find(&shaders->pipelines, device, handle);
	if (recording != NULL && pipeline != NULL) {
		bind(recording, pipeline);
	}
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_join(
	struct shaders *shaders, const void *device, const void *primary, const void *secondary)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *to = handles_find(&shaders->recordings, device, handles_number(primary));
	struct recording *from = handles_find(&shaders->recordings, device, handles_number(secondary));
	for (size_t i = 0; to != NULL && from != NULL && to != from && i < from->bound.len; i++) {
		bind(to, from->bound.items[i]);
	}
	pthread_mutex_unlock(&shaders->lock);
}

/* What a capture uses. */

bool shaders_are_free(struct shaders *shaders, unsigned wait_ms)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	uint64_t ns = (uint64_t)end.tv_nsec + (uint64_t)wait_ms * 1000000;
	end.tv_sec += (time_t)(ns / 1000000000);
	end.tv_nsec = (long)(ns % 1000000000);
	bool is_free = pthread_mutex_timedlock(&shaders->lock, &end) == 0;
	if (is_free) {
		pthread_mutex_unlock(&shaders->lock);
	}
	return is_free;
}

void shaders_used(struct shaders *shaders, const void *device, const void *buffer)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *recording =
		handles_find(&shaders->recordings, device, handles_number(buffer));
	for (size_t i = 0; recording != NULL && i < recording->bound.len; i++) {
		struct shader_pipeline *pipeline = recording->bound.items[i];
		pipeline->is_used = pipeline->is_used || shader_pipelines_add(&shaders->used, pipeline);
	}
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_forget_used(struct shaders *shaders)
{
	pthread_mutex_lock(&shaders->lock);
	for (size_t i = 0; i < shaders->used.len; i++) {
		shaders->used.items[i]->is_used = false;
	}
	shader_pipelines_clear(&shaders->bytes, &shaders->used);
	pthread_mutex_unlock(&shaders->lock);
}

uint64_t shaders_each_used(struct shaders *shaders, size_t max, shader_use_fn take, void *context)
{
	pthread_mutex_lock(&shaders->lock);
	uint64_t left_out = shader_uses_each(&shaders->used, max, take, context);
	pthread_mutex_unlock(&shaders->lock);
	return left_out;
}
