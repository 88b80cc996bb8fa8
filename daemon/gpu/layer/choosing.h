#ifndef GPU_LAYER_CHOOSING_H
#define GPU_LAYER_CHOOSING_H

#include <vulkan/vulkan.h>

/*
 * The devices that the program sees: those alone that PROFD_GPU_DEVICE means (protocol/gpu_pick.h) of what is below, in their order and unchanged. When it means
 * none, or may mean several, the program sees all, and profd is told so, as it is at each start. Vulkan's functions of these names. Any thread.
 */
VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate(
	VkInstance instance, uint32_t *count, VkPhysicalDevice *devices);
/* A group has those of its devices that are seen; one that has none is not there. */
VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate_groups(
	VkInstance instance, uint32_t *count, VkPhysicalDeviceGroupProperties *groups);
VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate_groups_khr(
	VkInstance instance, uint32_t *count, VkPhysicalDeviceGroupProperties *groups);

#endif
