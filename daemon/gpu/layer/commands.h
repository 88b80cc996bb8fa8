#ifndef GPU_LAYER_COMMANDS_H
#define GPU_LAYER_COMMANDS_H

#include <vulkan/vulkan.h>

/* Command buffers and the labels in them: Vulkan's functions of these names, noted and passed on. Threads as Vulkan has it. */
VKAPI_ATTR VkResult VKAPI_CALL commands_allocate(
	VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *buffers);
VKAPI_ATTR void VKAPI_CALL commands_free(
	VkDevice device, VkCommandPool pool, uint32_t count, const VkCommandBuffer *buffers);
VKAPI_ATTR void VKAPI_CALL commands_destroy_pool(
	VkDevice device, VkCommandPool pool, const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL commands_begin(
	VkCommandBuffer buffer, const VkCommandBufferBeginInfo *info);
VKAPI_ATTR void VKAPI_CALL commands_execute(
	VkCommandBuffer buffer, uint32_t count, const VkCommandBuffer *secondaries);
VKAPI_ATTR void VKAPI_CALL commands_begin_label(
	VkCommandBuffer buffer, const VkDebugUtilsLabelEXT *label);
VKAPI_ATTR void VKAPI_CALL commands_insert_label(
	VkCommandBuffer buffer, const VkDebugUtilsLabelEXT *label);

#endif
