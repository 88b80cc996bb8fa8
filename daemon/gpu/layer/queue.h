#ifndef GPU_LAYER_QUEUE_H
#define GPU_LAYER_QUEUE_H

#include <vulkan/vulkan.h>

/* Where frames begin and end: Vulkan's functions of these names, counted and passed on. Threads as Vulkan has it. */
VKAPI_ATTR VkResult VKAPI_CALL queue_submit(
	VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL queue_submit2(
	VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL queue_submit2_khr(
	VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL queue_bind_sparse(
	VkQueue queue, uint32_t count, const VkBindSparseInfo *infos, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL queue_present(VkQueue queue, const VkPresentInfoKHR *info);

#endif
