#ifndef GPU_LAYER_PIPELINES_H
#define GPU_LAYER_PIPELINES_H

#include <vulkan/vulkan.h>

/*
 * Shader modules, the pipelines that are made of them, and where these are bound: Vulkan's functions of these names, noted and passed on.
 * Threads as Vulkan has it.
 */
VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_module(VkDevice device,
	const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *allocator,
	VkShaderModule *module);
VKAPI_ATTR void VKAPI_CALL pipelines_destroy_module(
	VkDevice device, VkShaderModule module, const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_compute(VkDevice device, VkPipelineCache cache,
	uint32_t count, const VkComputePipelineCreateInfo *infos,
	const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_graphics(VkDevice device, VkPipelineCache cache,
	uint32_t count, const VkGraphicsPipelineCreateInfo *infos,
	const VkAllocationCallbacks *allocator, VkPipeline *pipelines);
VKAPI_ATTR void VKAPI_CALL pipelines_destroy(
	VkDevice device, VkPipeline pipeline, const VkAllocationCallbacks *allocator);
VKAPI_ATTR void VKAPI_CALL pipelines_bind(
	VkCommandBuffer buffer, VkPipelineBindPoint point, VkPipeline pipeline);

#endif
