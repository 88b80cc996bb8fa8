/* What the Vulkan loader calls (LoaderLayerInterface.md, "Layer Interface Version 2"): beside what the program calls (program.h) the one name that this library exports. */
#include <string.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/choosing.h"
#include "gpu/layer/commands.h"
#include "gpu/layer/making.h"
#include "gpu/layer/pipelines.h"
#include "gpu/layer/queue.h"
#include "gpu/layer/semaphores.h"
#include "gpu/layer/swapchains.h"

#define INTERFACE_VERSION 2
#define COUNT(array)      (sizeof(array) / sizeof((array)[0]))

VK_LAYER_EXPORT VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
	VkNegotiateLayerInterface *offer);

struct entry {
	const char *name;
	PFN_vkVoidFunction function;
};

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance handle, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice handle, const char *name);

/* Every chain has these. */
static const struct entry instance_entries[] = {
	{"vkGetInstanceProcAddr", (PFN_vkVoidFunction)get_instance},
	{"vkCreateInstance", (PFN_vkVoidFunction)making_create_instance},
	{"vkDestroyInstance", (PFN_vkVoidFunction)making_destroy_instance},
	{"vkCreateDevice", (PFN_vkVoidFunction)making_create_device},
	{"vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)choosing_enumerate},
};

/* These are given out only where the chain below has them: the program must not see functions that are not there. */
static const struct entry device_entries[] = {
	{"vkGetDeviceProcAddr", (PFN_vkVoidFunction)get_device},
	{"vkDestroyDevice", (PFN_vkVoidFunction)making_destroy_device},
	{"vkQueueSubmit", (PFN_vkVoidFunction)queue_submit},
	{"vkQueueSubmit2", (PFN_vkVoidFunction)queue_submit2},
	{"vkQueueSubmit2KHR", (PFN_vkVoidFunction)queue_submit2_khr},
	{"vkQueueBindSparse", (PFN_vkVoidFunction)queue_bind_sparse},
	{"vkQueuePresentKHR", (PFN_vkVoidFunction)queue_present},
	{"vkCreateSwapchainKHR", (PFN_vkVoidFunction)swapchains_create},
	{"vkDestroySwapchainKHR", (PFN_vkVoidFunction)swapchains_destroy},
	{"vkAllocateCommandBuffers", (PFN_vkVoidFunction)commands_allocate},
	{"vkFreeCommandBuffers", (PFN_vkVoidFunction)commands_free},
	{"vkDestroyCommandPool", (PFN_vkVoidFunction)commands_destroy_pool},
	{"vkBeginCommandBuffer", (PFN_vkVoidFunction)commands_begin},
	{"vkCmdExecuteCommands", (PFN_vkVoidFunction)commands_execute},
	{"vkCmdBeginDebugUtilsLabelEXT", (PFN_vkVoidFunction)commands_begin_label},
	{"vkCmdInsertDebugUtilsLabelEXT", (PFN_vkVoidFunction)commands_insert_label},
	{"vkCreateSemaphore", (PFN_vkVoidFunction)semaphores_create},
	{"vkDestroySemaphore", (PFN_vkVoidFunction)semaphores_destroy},
	{"vkSignalSemaphore", (PFN_vkVoidFunction)semaphores_signal},
	{"vkSignalSemaphoreKHR", (PFN_vkVoidFunction)semaphores_signal_khr},
	{"vkImportSemaphoreFdKHR", (PFN_vkVoidFunction)semaphores_import_fd},
	{"vkCreateShaderModule", (PFN_vkVoidFunction)pipelines_create_module},
	{"vkDestroyShaderModule", (PFN_vkVoidFunction)pipelines_destroy_module},
	{"vkCreateComputePipelines", (PFN_vkVoidFunction)pipelines_create_compute},
	{"vkCreateGraphicsPipelines", (PFN_vkVoidFunction)pipelines_create_graphics},
	{"vkDestroyPipeline", (PFN_vkVoidFunction)pipelines_destroy},
	{"vkCmdBindPipeline", (PFN_vkVoidFunction)pipelines_bind},
};

static const struct entry some_entries[] = {
	{"vkEnumeratePhysicalDeviceGroups", (PFN_vkVoidFunction)choosing_enumerate_groups},
	{"vkEnumeratePhysicalDeviceGroupsKHR", (PFN_vkVoidFunction)choosing_enumerate_groups_khr},
	{"vkDestroySurfaceKHR", (PFN_vkVoidFunction)swapchains_destroy_surface},
};

static PFN_vkVoidFunction find(const struct entry *entries, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i].name, name) == 0) {
			return entries[i].function;
		}
	}
	return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice handle, const char *name)
{
	struct layer_device *device = chain_device(handle);
	PFN_vkVoidFunction below = device != NULL ? device->get(handle, name) : NULL;
	PFN_vkVoidFunction ours = find(device_entries, COUNT(device_entries), name);
	return below != NULL && ours != NULL ? ours : below;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance handle, const char *name)
{
	PFN_vkVoidFunction ours = find(instance_entries, COUNT(instance_entries), name);
	if (ours != NULL || handle == NULL) {
		return ours;
	}
	struct layer_instance *instance = chain_instance(handle);
	PFN_vkVoidFunction below = instance != NULL ? instance->get(handle, name) : NULL;
	ours = find(device_entries, COUNT(device_entries), name);
	ours = ours != NULL ? ours : find(some_entries, COUNT(some_entries), name);
	return below != NULL && ours != NULL ? ours : below;
}

VK_LAYER_EXPORT VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
	VkNegotiateLayerInterface *offer)
{
	if (offer->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
		offer->loaderLayerInterfaceVersion < INTERFACE_VERSION) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	offer->loaderLayerInterfaceVersion = INTERFACE_VERSION;
	offer->pfnGetInstanceProcAddr = get_instance;
	offer->pfnGetDeviceProcAddr = get_device;
	offer->pfnGetPhysicalDeviceProcAddr = NULL;
	return VK_SUCCESS;
}
