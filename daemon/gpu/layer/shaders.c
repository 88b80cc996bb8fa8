#include "gpu/layer/shaders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/gpu_wire.h"
#include "protocol/sha256.h"

#define BUCKETS_LOG2 10
#define BUCKETS      (1 << BUCKETS_LOG2)
#define BOUND_LATELY 16 /* pipelines of a recording that are looked through */

/* What a module was made of; it has as many references as modules and stages are made of it. */
struct code {
	size_t references, bytes;
	void *data;                  /* owned; NULL: it was not kept */
	char hash[SHA256_HEX_BYTES]; /* "" until it is asked for */
};

/* What handles lead to. It is the first member of each. */
struct node {
	struct node *next;
	const void *device;
	uint64_t handle;
};

struct table {
	struct node *buckets[BUCKETS];
};

struct module {
	struct node node;
	struct code *code;
};

struct stage {
	struct code *code;
	const char *name;
	char entry[GPU_WIRE_ENTRY_BYTES];
};

/* It has a reference of its handle, of each command buffer that has bound it, and of a capture that uses it. */
struct pipeline {
	struct node node;
	size_t references;
	bool is_used;           /* by the capture under way */
	const void *bound_last; /* by this recording, which has it in its list therefore */
	uint64_t bound_generation;
	size_t count;
	struct stage stages[];
};

struct list {
	struct pipeline **items; /* a reference of each */
	size_t len, capacity;
};

struct recording {
	struct node node; /* of a command buffer */
	uint64_t pool;
	uint64_t generation; /* of its recording, among all of the process */
	struct list bound;
};

struct shaders {
	pthread_mutex_t lock;
	size_t bytes; /* of all code that is kept */
	uint64_t generations;
	struct table modules, pipelines, recordings;
	struct list used;
};

/* Tables. */

static struct node **bucket_of(struct table *table, uint64_t handle)
{
	return &table->buckets[handle * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BUCKETS_LOG2)];
}

static void *find(struct table *table, const void *device, uint64_t handle)
{
	struct node *node = *bucket_of(table, handle);
	while (node != NULL && (node->handle != handle || node->device != device)) {
		node = node->next;
	}
	return node;
}

static void add(struct table *table, struct node *node, const void *device, uint64_t handle)
{
	struct node **bucket = bucket_of(table, handle);
	node->device = device;
	node->handle = handle;
	node->next = *bucket;
	*bucket = node;
}

/* NULL: there is none. */
static void *take_out(struct table *table, const void *device, uint64_t handle)
{
	struct node **at = bucket_of(table, handle);
	while (*at != NULL && ((*at)->handle != handle || (*at)->device != device)) {
		at = &(*at)->next;
	}
	struct node *node = *at;
	if (node != NULL) {
		*at = node->next;
	}
	return node;
}

static uint64_t handle_of(const void *buffer)
{
	return (uint64_t)(uintptr_t)buffer;
}

/* References. */

static struct code *code_create(struct shaders *shaders, const void *data, size_t bytes)
{
	struct code *code = calloc(1, sizeof(*code));
	if (code == NULL) {
		return NULL;
	}
	code->references = 1;
	code->bytes = bytes;
	if (data != NULL && bytes <= SHADERS_MODULE_BYTES && bytes <= SHADERS_BYTES - shaders->bytes) {
		code->data = malloc(bytes + 1);
	}
	if (code->data != NULL) {
		memcpy(code->data, data, bytes);
		shaders->bytes += bytes;
	}
	return code;
}

static void code_release(struct shaders *shaders, struct code *code)
{
	if (code == NULL || --code->references > 0) {
		return;
	}
	if (code->data != NULL) {
		shaders->bytes -= code->bytes;
	}
	free(code->data);
	free(code);
}

static void pipeline_release(struct shaders *shaders, struct pipeline *pipeline)
{
	if (--pipeline->references > 0) {
		return;
	}
	for (size_t i = 0; i < pipeline->count; i++) {
		code_release(shaders, pipeline->stages[i].code);
	}
	free(pipeline);
}

/* Takes a reference. False: memory is out, its shaders are not seen. */
static bool list_add(struct list *list, struct pipeline *pipeline)
{
	if (list->len == list->capacity) {
		size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
		struct pipeline **items = realloc(list->items, capacity * sizeof(*items));
		if (items == NULL) {
			return false;
		}
		list->items = items;
		list->capacity = capacity;
	}
	pipeline->references++;
	list->items[list->len++] = pipeline;
	return true;
}

static void list_clear(struct shaders *shaders, struct list *list)
{
	for (size_t i = 0; i < list->len; i++) {
		pipeline_release(shaders, list->items[i]);
	}
	list->len = 0;
}

typedef void (*release_fn)(struct shaders *shaders, void *node);

static void release_module(struct shaders *shaders, void *node)
{
	struct module *module = node;
	code_release(shaders, module->code);
	free(module);
}

static void release_pipeline(struct shaders *shaders, void *node)
{
	pipeline_release(shaders, node);
}

static void release_recording(struct shaders *shaders, void *node)
{
	struct recording *recording = node;
	list_clear(shaders, &recording->bound);
	free(recording->bound.items);
	free(recording);
}

/* Those of a device (NULL: of all), and of that pool only when it is not NULL. */
static void release_all(struct shaders *shaders, struct table *table, release_fn release,
	const void *device, const uint64_t *pool)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		struct node **at = &table->buckets[i];
		while (*at != NULL) {
			struct node *node = *at;
			bool is_meant = (device == NULL || node->device == device) &&
							(pool == NULL || ((struct recording *)node)->pool == *pool);
			if (is_meant) {
				*at = node->next;
				release(shaders, node);
			} else {
				at = &node->next;
			}
		}
	}
}

static void release_device(struct shaders *shaders, const void *device)
{
	release_all(shaders, &shaders->recordings, release_recording, device, NULL);
	release_all(shaders, &shaders->pipelines, release_pipeline, device, NULL);
	release_all(shaders, &shaders->modules, release_module, device, NULL);
}

static void release_one(struct shaders *shaders, struct table *table, release_fn release,
	const void *device, uint64_t handle)
{
	pthread_mutex_lock(&shaders->lock);
	void *node = take_out(table, device, handle);
	if (node != NULL) {
		release(shaders, node);
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
	list_clear(shaders, &shaders->used);
	free(shaders->used.items);
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
	module->code = code_create(shaders, code, bytes);
	add(&shaders->modules, &module->node, device, handle);
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_module_gone(struct shaders *shaders, const void *device, uint64_t module)
{
	release_one(shaders, &shaders->modules, release_module, device, module);
}

/* The new reference of a stage; NULL: its code is not known. */
static struct code *code_of(
	struct shaders *shaders, const void *device, const struct shader_stage *given)
{
	if (given->module == 0) {
		return given->code != NULL ? code_create(shaders, given->code, given->bytes) : NULL;
	}
	struct module *module = find(&shaders->modules, device, given->module);
	if (module == NULL || module->code == NULL) {
		return NULL;
	}
	module->code->references++;
	return module->code;
}

static void add_stage(
	struct pipeline *pipeline, const struct shader_stage *given, struct code *code)
{
	struct stage *stage = &pipeline->stages[pipeline->count];
	if (code != NULL) {
		size_t len = strnlen(given->entry, sizeof(stage->entry) - 1);
		stage->code = code;
		stage->name = given->stage;
		memcpy(stage->entry, given->entry, len);
		pipeline->count++;
	}
}

static void add_stages_of(struct pipeline *pipeline, const struct pipeline *library)
{
	for (size_t i = 0; library != NULL && i < library->count; i++) {
		library->stages[i].code->references++;
		pipeline->stages[pipeline->count++] = library->stages[i];
	}
}

static size_t count_of(
	struct shaders *shaders, const void *device, const uint64_t *libraries, size_t library_count)
{
	size_t count = 0;
	for (size_t i = 0; i < library_count; i++) {
		const struct pipeline *library = find(&shaders->pipelines, device, libraries[i]);
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
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline) + room * sizeof(pipeline->stages[0]));
	if (pipeline != NULL) {
		pipeline->references = 1;
		for (size_t i = 0; i < count; i++) {
			add_stage(pipeline, &stages[i], code_of(shaders, device, &stages[i]));
		}
		for (size_t i = 0; i < library_count; i++) {
			add_stages_of(pipeline, find(&shaders->pipelines, device, libraries[i]));
		}
		add(&shaders->pipelines, &pipeline->node, device, handle);
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
	add(&shaders->recordings, &recording->node, device, handle_of(buffer));
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_freed(struct shaders *shaders, const void *device, const void *buffer)
{
	release_one(shaders, &shaders->recordings, release_recording, device, handle_of(buffer));
}

void shaders_pool_gone(struct shaders *shaders, const void *device, uint64_t pool)
{
	pthread_mutex_lock(&shaders->lock);
	release_all(shaders, &shaders->recordings, release_recording, device, &pool);
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_begun(struct shaders *shaders, const void *device, const void *buffer)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *recording = find(&shaders->recordings, device, handle_of(buffer));
	if (recording != NULL) {
		list_clear(shaders, &recording->bound);
		recording->generation = ++shaders->generations;
	}
	pthread_mutex_unlock(&shaders->lock);
}

/* Once, but where several threads record with the same pipelines at the same time: then some may be in a list again. */
static void bind(struct recording *recording, struct pipeline *pipeline)
{
	bool is_known =
		pipeline->bound_last == recording && pipeline->bound_generation == recording->generation;
	size_t len = recording->bound.len, lately = len < BOUND_LATELY ? len : BOUND_LATELY;
	for (size_t i = 1; !is_known && i <= lately; i++) {
		is_known = recording->bound.items[len - i] == pipeline;
	}
	if (is_known || list_add(&recording->bound, pipeline)) {
		pipeline->bound_last = recording;
		pipeline->bound_generation = recording->generation;
	}
}

void shaders_bound(struct shaders *shaders, const void *device, const void *buffer, uint64_t handle)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *recording = find(&shaders->recordings, device, handle_of(buffer));
	struct pipeline *pipeline = find(&shaders->pipelines, device, handle);
	if (recording != NULL && pipeline != NULL) {
		bind(recording, pipeline);
	}
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_join(
	struct shaders *shaders, const void *device, const void *primary, const void *secondary)
{
	pthread_mutex_lock(&shaders->lock);
	struct recording *to = find(&shaders->recordings, device, handle_of(primary));
	struct recording *from = find(&shaders->recordings, device, handle_of(secondary));
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
	struct recording *recording = find(&shaders->recordings, device, handle_of(buffer));
	for (size_t i = 0; recording != NULL && i < recording->bound.len; i++) {
		struct pipeline *pipeline = recording->bound.items[i];
		pipeline->is_used = pipeline->is_used || list_add(&shaders->used, pipeline);
	}
	pthread_mutex_unlock(&shaders->lock);
}

void shaders_forget_used(struct shaders *shaders)
{
	pthread_mutex_lock(&shaders->lock);
	for (size_t i = 0; i < shaders->used.len; i++) {
		shaders->used.items[i]->is_used = false;
	}
	list_clear(shaders, &shaders->used);
	pthread_mutex_unlock(&shaders->lock);
}

static size_t count_used(const struct shaders *shaders)
{
	size_t count = 0;
	for (size_t i = 0; i < shaders->used.len; i++) {
		count += shaders->used.items[i]->count;
	}
	return count;
}

/* Of equal code; of what was not kept only the same module is. */
static int compare_codes(const struct code *a, const struct code *b)
{
	int order = strcmp(a->hash, b->hash);
	if (order == 0 && a->data == NULL && a != b) {
		order = (uintptr_t)a < (uintptr_t)b ? -1 : 1;
	}
	return order;
}

static int compare_stages(const void *a, const void *b)
{
	const struct stage *one = *(const struct stage *const *)a,
					   *two = *(const struct stage *const *)b;
	int order = compare_codes(one->code, two->code);
	if (order == 0) {
		order = strcmp(one->name, two->name);
	}
	return order != 0 ? order : strcmp(one->entry, two->entry);
}

/* All stages that were used, sorted; owned (free). */
static const struct stage **sort_used(const struct shaders *shaders, size_t count)
{
	const struct stage **sorted = calloc(count + 1, sizeof(const struct stage *));
	size_t len = 0;
	for (size_t i = 0; sorted != NULL && i < shaders->used.len; i++) {
		const struct pipeline *pipeline = shaders->used.items[i];
		for (size_t j = 0; j < pipeline->count; j++) {
			struct code *code = pipeline->stages[j].code;
			if (code->hash[0] == '\0' && code->data != NULL) {
				sha256_hex(code->data, code->bytes, code->hash);
			}
			sorted[len++] = &pipeline->stages[j];
		}
	}
	if (sorted != NULL) {
		qsort(sorted, len, sizeof(const struct stage *), compare_stages);
	}
	return sorted;
}

static bool take_stage(const struct stage *stage, shader_use_fn take, void *context)
{
	struct shader_use use = {.code = stage->code->data,
		.bytes = stage->code->bytes,
		.hash = stage->code->hash,
		.stage = stage->name,
		.entry = stage->entry};
	return stage->code->data != NULL && take(context, &use);
}

uint64_t shaders_each_used(struct shaders *shaders, size_t max, shader_use_fn take, void *context)
{
	uint64_t left_out = 0;
	bool was_taken = true;
	pthread_mutex_lock(&shaders->lock);
	size_t count = count_used(shaders), taken = 0;
	const struct stage **sorted = sort_used(shaders, count);
	for (size_t i = 0; sorted != NULL && i < count; i++) {
		bool is_new = i == 0 || compare_codes(sorted[i]->code, sorted[i - 1]->code) != 0;
		if (is_new) {
			left_out += !was_taken;
			was_taken = false;
		}
		bool is_same = !is_new && compare_stages(&sorted[i], &sorted[i - 1]) == 0;
		if (!is_same && taken < max && take_stage(sorted[i], take, context)) {
			was_taken = true;
			taken++;
		}
	}
	left_out += sorted == NULL ? count : !was_taken;
	free(sorted);
	pthread_mutex_unlock(&shaders->lock);
	return left_out;
}
