#include "analyzer/model/model.h"

#include <stdlib.h>

#include "analyzer/model/loader.h"

struct model *model_create(
	struct strings *strings, const uint8_t *journal, size_t len, struct error *err)
{
	struct model *model = calloc(1, sizeof(*model));
	const struct model_stack none = {.end = JOURNAL_STACK_NONE};

	if (model == NULL || !VEC_PUSH(&model->stacks, none) ||
		!loader_run(model, strings, journal, len)) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a journal of %zu bytes", len);
		model_destroy(model);
		return NULL;
	}
	return model;
}

void model_destroy(struct model *model)
{
	if (model == NULL) {
		return;
	}
	VEC_FINISH(&model->metrics);
	VEC_FINISH(&model->processes);
	VEC_FINISH(&model->threads);
	VEC_FINISH(&model->images);
	VEC_FINISH(&model->frames);
	VEC_FINISH(&model->stacks);
	VEC_FINISH(&model->cells);
	VEC_FINISH(&model->notes);
	map_finish(&model->image_ids);
	map_finish(&model->programs);
	free(model);
}

uint64_t model_samples(const struct model *model)
{
	return model->metrics.len > 0 ? model->metrics.items[0].samples : 0;
}

uint64_t model_period(const struct model *model)
{
	return model->metrics.len > 0 ? model->metrics.items[0].period : 0;
}

uint64_t model_lost(const struct model *model)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < sizeof(model->lost) / sizeof(model->lost[0]); i++) {
		lost += i == JOURNAL_LOSS_THROTTLED ? 0 : model->lost[i];
	}
	return lost;
}

uint64_t model_cpu_ns(const struct model *model)
{
	uint64_t total = 0;

	for (size_t i = 0; i < model->processes.len; i++) {
		total += model->processes.items[i].cpu_ns;
	}
	return total;
}

const struct model_image *model_image(const struct model *model, uint64_t journal_id)
{
	const uint64_t *index = map_get(&model->image_ids, journal_id);

	return index == NULL ? NULL : &model->images.items[*index];
}

bool model_is_program(const struct model *model, uint32_t process, uint32_t image)
{
	return process != MODEL_NONE && image != MODEL_NONE &&
		   map_get(&model->programs, (uint64_t)process << 32 | image) != NULL;
}

uint32_t model_thread_name(const struct model *model, const struct model_thread *thread)
{
	if (thread->name != 0) {
		return thread->name;
	}
	return thread->process == MODEL_NONE ? 0 : model->processes.items[thread->process].name;
}
