#include "gpu/layer/shader_pipelines.h"

#include <stdlib.h>
#include <string.h>

struct shader_code *shader_code_create(size_t *kept, const void *data, size_t bytes)
{
	struct shader_code *code = calloc(1, sizeof(*code));
	if (code == NULL) {
		return NULL;
	}
	code->references = 1;
	code->bytes = bytes;
	if (data != NULL && bytes <= SHADERS_MODULE_BYTES && bytes <= SHADERS_BYTES - *kept) {
		code->data = malloc(bytes + 1);
	}
	if (code->data != NULL) {
		memcpy(code->data, data, bytes);
		*kept += bytes;
	}
	return code;
}

void shader_code_release(size_t *kept, struct shader_code *code)
{
	if (code == NULL || --code->references > 0) {
		return;
	}
	if (code->data != NULL) {
		*kept -= code->bytes;
	}
	free(code->data);
	free(code);
}

struct shader_pipeline *shader_pipeline_create(size_t room)
{
	struct shader_pipeline *pipeline =
		calloc(1, sizeof(*pipeline) + room * sizeof(pipeline->stages[0]));
	if (pipeline != NULL) {
		pipeline->references = 1;
	}
	return pipeline;
}

void shader_pipeline_add(
	struct shader_pipeline *pipeline, const struct shader_stage *given, struct shader_code *code)
{
	struct shader_entry *stage = &pipeline->stages[pipeline->count];
	if (code != NULL) {
		size_t len = strnlen(given->entry, sizeof(stage->entry) - 1);
		stage->code = code;
		stage->name = given->stage;
		memcpy(stage->entry, given->entry, len);
		pipeline->count++;
	}
}

void shader_pipeline_add_all(
	struct shader_pipeline *pipeline, const struct shader_pipeline *library)
{
	for (size_t i = 0; library != NULL && i < library->count; i++) {
		library->stages[i].code->references++;
		pipeline->stages[pipeline->count++] = library->stages[i];
	}
}

void shader_pipeline_release(size_t *kept, struct shader_pipeline *pipeline)
{
	if (--pipeline->references > 0) {
		return;
	}
	for (size_t i = 0; i < pipeline->count; i++) {
		shader_code_release(kept, pipeline->stages[i].code);
	}
	free(pipeline);
}

bool shader_pipelines_add(struct shader_pipelines *list, struct shader_pipeline *pipeline)
{
	if (list->len == list->capacity) {
		size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
		struct shader_pipeline **items = realloc(list->items, capacity * sizeof(*items));
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

void shader_pipelines_clear(size_t *kept, struct shader_pipelines *list)
{
	for (size_t i = 0; i < list->len; i++) {
		shader_pipeline_release(kept, list->items[i]);
	}
	list->len = 0;
}

void shader_pipelines_finish(size_t *kept, struct shader_pipelines *list)
{
	shader_pipelines_clear(kept, list);
	free(list->items);
	*list = (struct shader_pipelines){0};
}
