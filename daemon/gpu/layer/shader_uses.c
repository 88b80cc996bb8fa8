#include "gpu/layer/shader_uses.h"

#include <stdlib.h>
#include <string.h>

static size_t count_used(const struct shader_pipelines *used)
{
	size_t count = 0;
	for (size_t i = 0; i < used->len; i++) {
		count += used->items[i]->count;
	}
	return count;
}

/* Of equal code; of what was not kept only the same module is. */
static int compare_codes(const struct shader_code *a, const struct shader_code *b)
{
	int order = strcmp(a->hash, b->hash);
	if (order == 0 && a->data == NULL && a != b) {
		order = (uintptr_t)a < (uintptr_t)b ? -1 : 1;
	}
	return order;
}

static int compare_stages(const void *a, const void *b)
{
	const struct shader_entry *one = *(const struct shader_entry *const *)a,
							  *two = *(const struct shader_entry *const *)b;
	int order = compare_codes(one->code, two->code);
	if (order == 0) {
		order = strcmp(one->name, two->name);
	}
	return order != 0 ? order : strcmp(one->entry, two->entry);
}

/* All stages that were used, sorted; owned (free). */
static const struct shader_entry **sort_used(const struct shader_pipelines *used, size_t count)
{
	const struct shader_entry **sorted = calloc(count + 1, sizeof(const struct shader_entry *));
	size_t len = 0;
	for (size_t i = 0; sorted != NULL && i < used->len; i++) {
		const struct shader_pipeline *pipeline = used->items[i];
		for (size_t j = 0; j < pipeline->count; j++) {
			struct shader_code *code = pipeline->stages[j].code;
			if (code->hash[0] == '\0' && code->data != NULL) {
				sha256_hex(code->data, code->bytes, code->hash);
			}
			sorted[len++] = &pipeline->stages[j];
		}
	}
	if (sorted != NULL) {
		qsort(sorted, len, sizeof(const struct shader_entry *), compare_stages);
	}
	return sorted;
}

static bool take_stage(const struct shader_entry *stage, shader_use_fn take, void *context)
{
	struct shader_use use = {.code = stage->code->data,
		.bytes = stage->code->bytes,
		.hash = stage->code->hash,
		.stage = stage->name,
		.entry = stage->entry};
	return stage->code->data != NULL && take(context, &use);
}

uint64_t shader_uses_each(
	const struct shader_pipelines *used, size_t max, shader_use_fn take, void *context)
{
	uint64_t left_out = 0;
	bool was_taken = true;
	size_t count = count_used(used), taken = 0;
	const struct shader_entry **sorted = sort_used(used, count);
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
	return left_out;
}
