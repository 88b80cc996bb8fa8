#ifndef ANALYZER_MODEL_LOADER_H
#define ANALYZER_MODEL_LOADER_H

#include "analyzer/model/model.h"

/* Fills a model from a journal's records; for model_create. False: memory is out (the model can be destroyed). */
bool loader_run(struct model *model, struct strings *strings, const uint8_t *journal, size_t len);

#endif
