#include "gpu/layer/pipelines.h"

#include <stddef.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/session.h"
#include "gpu/layer/structures.h"

#define STAGES_MAX    8 /* of a pipeline: it has each kind once */
#define LIBRARIES_MAX 8 /* and each of its four parts once */

static const char *stage_name(VkShaderStageFlagBits stage)
{
	switch ((int)stage) {
	case VK_SHADER_STAGE_VERTEX_BIT:
		return "vertex";
	case VK_SHADER_STAGE_TESSELLATION_CONTROL_BIT:
		return "tess_control";
	case VK_SHADER_STAGE_TESSELLATION_EVALUATION_BIT:
		return "tess_evaluation";
	case VK_SHADER_STAGE_GEOMETRY_BIT:
		return "geometry";
	case VK_SHADER_STAGE_FRAGMENT_BIT:
		return "fragment";
	case VK_SHADER_STAGE_COMPUTE_BIT:
		return "compute";
	case VK_SHADER_STAGE_TASK_BIT_NV:
		return "task";
	case VK_SHADER_STAGE_MESH_BIT_NV:
		return "mesh";
	default:
		return "other";
	}
}

static struct shader_stage describe(const VkPipelineShaderStageCreateInfo *info)
{
	struct shader_stage stage = {.module = (uint64_t)info->module,
		.stage = stage_name(info->stage),
		.entry = info->pName != NULL ? info->pName : ""};
	const VkShaderModuleCreateInfo *code =
		info->module == VK_NULL_HANDLE
			? structures_find(info->pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO)
			: NULL;
	if (code != NULL) {
		stage.code = code->pCode;
		stage.bytes = code->codeSize;
	}
	return stage;
}

static void note_pipeline(const struct layer_device *device, VkPipeline pipeline,
	const VkPipelineShaderStageCreateInfo *infos, uint32_t count, const void *next)
{
	struct shader_stage stages[STAGES_MAX] = {0};
	uint64_t libraries[LIBRARIES_MAX] = {0};
	const VkPipelineLibraryCreateInfoKHR *given =
		structures_find(next, VK_STRUCTURE_TYPE_PIPELINE_LIBRARY_CREATE_INFO_KHR);
	size_t stage_count = 0, library_count = 0;
	while (infos != NULL && stage_count < count && stage_count < STAGES_MAX) {
		stages[stage_count] = describe(&infos[stage_count]);
		stage_count++;
	}
	while (given != NULL && library_count < given->libraryCount && library_count < LIBRARIES_MAX) {
		libraries[library_count] = (uint64_t)given->pLibraries[library_count];
		library_count++;
	}
	shaders_pipeline_made(device->shaders, device->key, (uint64_t)pipeline, stages, stage_count,
		libraries, library_count);
}

/* Those that could not be made stay null, whatever the driver leaves there. */
static void clear(VkPipeline *pipelines, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pipelines[i] = VK_NULL_HANDLE;
	}
}

VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_module(VkDevice handle,
	const VkShaderModuleCreateInfo *info, const VkAllocationCallbacks *allocator,
	VkShaderModule *module)
{
	struct layer_device *device = chain_device(handle);
	VkResult result = device->create_module(handle, info, allocator, module);
	if (result == VK_SUCCESS && device->shaders != NULL && session_is_open()) {
		shaders_module_made(
			device->shaders, device->key, (uint64_t)*module, info->pCode, info->codeSize);
	}
	return result;
}

VKAPI_ATTR void VKAPI_CALL pipelines_destroy_module(
	VkDevice handle, VkShaderModule module, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	if (module != VK_NULL_HANDLE && device->shaders != NULL) {
		shaders_module_gone(device->shaders, device->key, (uint64_t)module);
	}
	device->destroy_module(handle, module, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_compute(VkDevice handle, VkPipelineCache cache,
	uint32_t count, const VkComputePipelineCreateInfo *infos,
	const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
	struct layer_device *device = chain_device(handle);
	clear(pipelines, count);
	VkResult result = device->create_compute(handle, cache, count, infos, allocator, pipelines);
	for (uint32_t i = 0; device->shaders != NULL && i < count; i++) {
		if (pipelines[i] != VK_NULL_HANDLE) {
			note_pipeline(device, pipelines[i], &infos[i].stage, 1, NULL);
		}
	}
	return result;
}

VKAPI_ATTR VkResult VKAPI_CALL pipelines_create_graphics(VkDevice handle, VkPipelineCache cache,
	uint32_t count, const VkGraphicsPipelineCreateInfo *infos,
	const VkAllocationCallbacks *allocator, VkPipeline *pipelines)
{
	struct layer_device *device = chain_device(handle);
	clear(pipelines, count);
	VkResult result = device->create_graphics(handle, cache, count, infos, allocator, pipelines);
	for (uint32_t i = 0; device->shaders != NULL && i < count; i++) {
		if (pipelines[i] != VK_NULL_HANDLE) {
			note_pipeline(
				device, pipelines[i], infos[i].pStages, infos[i].stageCount, infos[i].pNext);
		}
	}
	return result;
}

VKAPI_ATTR void VKAPI_CALL pipelines_destroy(
	VkDevice handle, VkPipeline pipeline, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	if (pipeline != VK_NULL_HANDLE && device->shaders != NULL) {
		shaders_pipeline_gone(device->shaders, device->key, (uint64_t)pipeline);
	}
	device->destroy_pipeline(handle, pipeline, allocator);
}

VKAPI_ATTR void VKAPI_CALL pipelines_bind(
	VkCommandBuffer buffer, VkPipelineBindPoint point, VkPipeline pipeline)
{
	struct layer_device *device = chain_device(buffer);
	if (device->shaders != NULL) {
		shaders_bound(device->shaders, device->key, buffer, (uint64_t)pipeline);
	}
	device->bind_pipeline(buffer, point, pipeline);
}
