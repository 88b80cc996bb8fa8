#ifndef GPU_LAYER_SEMAPHORES_H
#define GPU_LAYER_SEMAPHORES_H

#include <vulkan/vulkan.h>

#include "gpu/layer/chain.h"

/* Timeline semaphores as the program makes, signals and waits for them, told to its device's timelines: Vulkan's functions of these names, passed on. Threads as Vulkan has it. */
VKAPI_ATTR VkResult VKAPI_CALL semaphores_create(VkDevice device, const VkSemaphoreCreateInfo *info,
	const VkAllocationCallbacks *allocator, VkSemaphore *semaphore);
VKAPI_ATTR void VKAPI_CALL semaphores_destroy(
	VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL semaphores_signal(
	VkDevice device, const VkSemaphoreSignalInfo *info);
VKAPI_ATTR VkResult VKAPI_CALL semaphores_signal_khr(
	VkDevice device, const VkSemaphoreSignalInfo *info);
VKAPI_ATTR VkResult VKAPI_CALL semaphores_import_fd(
	VkDevice device, const VkImportSemaphoreFdInfoKHR *info);

/* What these submits wait for and signal has to be known. */
bool semaphores_matter(const struct layer_device *device);
/* Then, behind the call that was passed on, and before anything can begin or end. */
void semaphores_submitted(
	const struct layer_device *device, VkQueue queue, uint32_t count, const VkSubmitInfo *infos);
void semaphores_submitted2(
	const struct layer_device *device, VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos);
void semaphores_bound(const struct layer_device *device, VkQueue queue, uint32_t count,
	const VkBindSparseInfo *infos);

#endif
