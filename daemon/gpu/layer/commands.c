#include "gpu/layer/commands.h"

#include <stddef.h>

#include "gpu/layer/chain.h"

/* A handle is a pointer or a number, by machine. */
static uint64_t pool_number(VkCommandPool pool)
{
	return (uint64_t)pool;
}

VKAPI_ATTR VkResult VKAPI_CALL commands_allocate(
	VkDevice handle, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *buffers)
{
	struct layer_device *device = chain_device(handle);
	VkResult result = device->allocate(handle, info, buffers);
	for (uint32_t i = 0; result == VK_SUCCESS && i < info->commandBufferCount; i++) {
		uint64_t pool = pool_number(info->commandPool);
		if (device->labels != NULL) {
			labels_allocated(device->labels, pool, buffers[i]);
		}
		if (device->shaders != NULL) {
			shaders_allocated(device->shaders, device->key, pool, buffers[i]);
		}
	}
	return result;
}

VKAPI_ATTR void VKAPI_CALL commands_free(
	VkDevice handle, VkCommandPool pool, uint32_t count, const VkCommandBuffer *buffers)
{
	struct layer_device *device = chain_device(handle);
	for (uint32_t i = 0; device->labels != NULL && i < count; i++) {
		labels_freed(device->labels, buffers[i]);
	}
	for (uint32_t i = 0; device->shaders != NULL && i < count; i++) {
		shaders_freed(device->shaders, device->key, buffers[i]);
	}
	device->free(handle, pool, count, buffers);
}

VKAPI_ATTR void VKAPI_CALL commands_destroy_pool(
	VkDevice handle, VkCommandPool pool, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	if (device->labels != NULL) {
		labels_pool_gone(device->labels, pool_number(pool));
	}
	if (device->shaders != NULL) {
		shaders_pool_gone(device->shaders, device->key, pool_number(pool));
	}
	device->destroy_pool(handle, pool, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL commands_begin(
	VkCommandBuffer buffer, const VkCommandBufferBeginInfo *info)
{
	struct layer_device *device = chain_device(buffer);
	if (device->labels != NULL) {
		labels_begun(device->labels, buffer);
	}
	if (device->shaders != NULL) {
		shaders_begun(device->shaders, device->key, buffer);
	}
	return device->begin(buffer, info);
}

VKAPI_ATTR void VKAPI_CALL commands_execute(
	VkCommandBuffer buffer, uint32_t count, const VkCommandBuffer *secondaries)
{
	struct layer_device *device = chain_device(buffer);
	for (uint32_t i = 0; device->labels != NULL && i < count; i++) {
		labels_join(device->labels, buffer, secondaries[i]);
	}
	for (uint32_t i = 0; device->shaders != NULL && i < count; i++) {
		shaders_join(device->shaders, device->key, buffer, secondaries[i]);
	}
	device->execute(buffer, count, secondaries);
}

static void note(struct layer_device *device, VkCommandBuffer buffer, const char *name)
{
	if (device->labels != NULL && name != NULL) {
		labels_add(device->labels, buffer, name);
	}
}

VKAPI_ATTR void VKAPI_CALL commands_begin_label(
	VkCommandBuffer buffer, const VkDebugUtilsLabelEXT *label)
{
	struct layer_device *device = chain_device(buffer);
	note(device, buffer, label->pLabelName);
	device->begin_label(buffer, label);
}

VKAPI_ATTR void VKAPI_CALL commands_insert_label(
	VkCommandBuffer buffer, const VkDebugUtilsLabelEXT *label)
{
	struct layer_device *device = chain_device(buffer);
	note(device, buffer, label->pLabelName);
	device->insert_label(buffer, label);
}
