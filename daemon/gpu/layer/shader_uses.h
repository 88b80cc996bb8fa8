#ifndef GPU_LAYER_SHADER_USES_H
#define GPU_LAYER_SHADER_USES_H

#include <stdint.h>

#include "gpu/layer/shader_pipelines.h"
#include "gpu/layer/shaders.h"

/* shaders_each_used of these pipelines; the lock of the shaders is held. */
uint64_t shader_uses_each(
	const struct shader_pipelines *used, size_t max, shader_use_fn take, void *context);

#endif
