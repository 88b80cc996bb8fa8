#ifndef GPU_LAYER_PORTRAIT_H
#define GPU_LAYER_PORTRAIT_H

#include "gpu/layer/chain.h"
#include "gpu/layer/report.h"

/* What Vulkan tells of a physical device: its name, kind, driver, uuid (all 0 where Vulkan 1.1 is not) and place among the instance's. */
void portrait_of(
	const struct layer_instance *instance, VkPhysicalDevice physical, struct report_device *out);

#endif
