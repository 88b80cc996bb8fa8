#ifndef GPU_LAYER_MAKING_H
#define GPU_LAYER_MAKING_H

#include <vulkan/vulkan.h>

/*
 * Instances and devices as the program makes and destroys them: Vulkan's functions of these names, passed on to what is below. Threads as
 * Vulkan has it.
 */
VKAPI_ATTR VkResult VKAPI_CALL making_create_instance(
	const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance);
VKAPI_ATTR void VKAPI_CALL making_destroy_instance(
	VkInstance instance, const VkAllocationCallbacks *allocator);
VKAPI_ATTR VkResult VKAPI_CALL making_create_device(VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device);
VKAPI_ATTR void VKAPI_CALL making_destroy_device(
	VkDevice device, const VkAllocationCallbacks *allocator);

#endif
