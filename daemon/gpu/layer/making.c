#include "gpu/layer/making.h"

#include <stdlib.h>
#include <string.h>

#include <vulkan/vk_layer.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/portrait.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/session.h"

#define LAYERS_MAX 64 /* below this one; what is deeper is not looked at */

/* The loader's list of what is below; NULL when the loader is none that knows layers. The loader wants the link to be advanced in place. */
static VkLayerInstanceCreateInfo *instance_link(const VkInstanceCreateInfo *info)
{
	VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
	while (link != NULL && (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
							   link->function != VK_LAYER_LINK_INFO)) {
		link = (VkLayerInstanceCreateInfo *)link->pNext;
	}
	return link;
}

static VkLayerDeviceCreateInfo *device_link(const VkDeviceCreateInfo *info)
{
	VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)info->pNext;
	while (link != NULL && (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
							   link->function != VK_LAYER_LINK_INFO)) {
		link = (VkLayerDeviceCreateInfo *)link->pNext;
	}
	return link;
}

static void say_hello(const VkLayerInstanceLink *link)
{
	const void *below[LAYERS_MAX];
	unsigned count = 0;
	for (; link != NULL && count < LAYERS_MAX; link = link->pNext) {
		memcpy(&below[count], &link->pfnNextGetInstanceProcAddr, sizeof(below[count]));
		count++;
	}
	presence_hello(SESSION_VULKAN, below, count);
}

static void fill_instance(struct layer_instance *made, VkInstance instance,
	PFN_vkGetInstanceProcAddr get, const VkInstanceCreateInfo *info)
{
	const VkApplicationInfo *application = info->pApplicationInfo;
	made->key = chain_key(instance);
	made->handle = instance;
	made->api_version = application != NULL && application->apiVersion != 0
							? application->apiVersion
							: VK_API_VERSION_1_0;
	made->get = get;
	made->destroy = (PFN_vkDestroyInstance)get(instance, "vkDestroyInstance");
	made->enumerate = (PFN_vkEnumeratePhysicalDevices)get(instance, "vkEnumeratePhysicalDevices");
	made->enumerate_groups =
		(PFN_vkEnumeratePhysicalDeviceGroups)get(instance, "vkEnumeratePhysicalDeviceGroups");
	made->enumerate_groups_khr =
		(PFN_vkEnumeratePhysicalDeviceGroups)get(instance, "vkEnumeratePhysicalDeviceGroupsKHR");
	made->destroy_surface = (PFN_vkDestroySurfaceKHR)get(instance, "vkDestroySurfaceKHR");
	made->properties =
		(PFN_vkGetPhysicalDeviceProperties)get(instance, "vkGetPhysicalDeviceProperties");
	made->properties2 =
		(PFN_vkGetPhysicalDeviceProperties2)get(instance, "vkGetPhysicalDeviceProperties2");
}

VKAPI_ATTR VkResult VKAPI_CALL making_create_instance(
	const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance)
{
	VkLayerInstanceCreateInfo *link = instance_link(info);
	if (link == NULL || link->u.pLayerInfo == NULL) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	PFN_vkGetInstanceProcAddr get = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
	PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
	struct layer_instance *made = calloc(1, sizeof(*made));
	if (create == NULL || made == NULL) {
		free(made);
		return create == NULL ? VK_ERROR_INITIALIZATION_FAILED : VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	say_hello(link->u.pLayerInfo);
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	VkResult result = create(info, allocator, instance);
	if (result != VK_SUCCESS) {
		free(made);
		return result;
	}
	fill_instance(made, *instance, get, info);
	chain_add_instance(made);
	return result;
}

static bool is_recorded(struct layer_device *device, const void *unused)
{
	(void)unused;
	return session_records(&device->counts);
}

VKAPI_ATTR void VKAPI_CALL making_destroy_instance(
	VkInstance instance, const VkAllocationCallbacks *allocator)
{
	struct layer_instance *known = instance != NULL ? chain_instance(instance) : NULL;
	struct layer_device *device;
	if (known != NULL) {
		/* RenderDoc ends no recording without its instance. */
		while ((device = chain_search(known->key, is_recorded, NULL)) != NULL) {
			session_instance_goes(&device->counts);
		}
		chain_remove_instance(known);
		known->destroy(instance, allocator);
		free(known);
	}
}

static void fill_device(struct layer_device *made, VkDevice device, PFN_vkGetDeviceProcAddr get)
{
	made->key = chain_key(device);
	made->handle = device;
	swapchains_prepare(&made->swapchains);
	made->get = get;
	made->destroy = (PFN_vkDestroyDevice)get(device, "vkDestroyDevice");
	made->submit = (PFN_vkQueueSubmit)get(device, "vkQueueSubmit");
	made->submit2 = (PFN_vkQueueSubmit2)get(device, "vkQueueSubmit2");
	made->submit2_khr = (PFN_vkQueueSubmit2)get(device, "vkQueueSubmit2KHR");
	made->bind_sparse = (PFN_vkQueueBindSparse)get(device, "vkQueueBindSparse");
	made->present = (PFN_vkQueuePresentKHR)get(device, "vkQueuePresentKHR");
	made->create_swapchain = (PFN_vkCreateSwapchainKHR)get(device, "vkCreateSwapchainKHR");
	made->destroy_swapchain = (PFN_vkDestroySwapchainKHR)get(device, "vkDestroySwapchainKHR");
	made->allocate = (PFN_vkAllocateCommandBuffers)get(device, "vkAllocateCommandBuffers");
	made->free = (PFN_vkFreeCommandBuffers)get(device, "vkFreeCommandBuffers");
	made->destroy_pool = (PFN_vkDestroyCommandPool)get(device, "vkDestroyCommandPool");
	made->begin = (PFN_vkBeginCommandBuffer)get(device, "vkBeginCommandBuffer");
	made->execute = (PFN_vkCmdExecuteCommands)get(device, "vkCmdExecuteCommands");
	made->begin_label =
		(PFN_vkCmdBeginDebugUtilsLabelEXT)get(device, "vkCmdBeginDebugUtilsLabelEXT");
	made->insert_label =
		(PFN_vkCmdInsertDebugUtilsLabelEXT)get(device, "vkCmdInsertDebugUtilsLabelEXT");
	made->create_semaphore = (PFN_vkCreateSemaphore)get(device, "vkCreateSemaphore");
	made->destroy_semaphore = (PFN_vkDestroySemaphore)get(device, "vkDestroySemaphore");
	made->signal = (PFN_vkSignalSemaphore)get(device, "vkSignalSemaphore");
	made->signal_khr = (PFN_vkSignalSemaphore)get(device, "vkSignalSemaphoreKHR");
	made->import_fd = (PFN_vkImportSemaphoreFdKHR)get(device, "vkImportSemaphoreFdKHR");
	made->create_module = (PFN_vkCreateShaderModule)get(device, "vkCreateShaderModule");
	made->destroy_module = (PFN_vkDestroyShaderModule)get(device, "vkDestroyShaderModule");
	made->create_compute = (PFN_vkCreateComputePipelines)get(device, "vkCreateComputePipelines");
	made->create_graphics = (PFN_vkCreateGraphicsPipelines)get(device, "vkCreateGraphicsPipelines");
	made->destroy_pipeline = (PFN_vkDestroyPipeline)get(device, "vkDestroyPipeline");
	made->bind_pipeline = (PFN_vkCmdBindPipeline)get(device, "vkCmdBindPipeline");
	made->labels = session_is_open() ? labels_create() : NULL;
	made->timelines = session_is_open() ? timelines_create() : NULL;
	made->shaders = session_is_open() ? session_shaders() : NULL;
}

VKAPI_ATTR VkResult VKAPI_CALL making_create_device(VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device)
{
	VkLayerDeviceCreateInfo *link = device_link(info);
	struct layer_instance *instance = chain_instance(physical);
	if (link == NULL || link->u.pLayerInfo == NULL || instance == NULL) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	PFN_vkGetDeviceProcAddr get = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
	PFN_vkCreateDevice create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(
		instance->handle, "vkCreateDevice");
	struct layer_device *made = calloc(1, sizeof(*made));
	if (create == NULL || made == NULL) {
		free(made);
		return create == NULL ? VK_ERROR_INITIALIZATION_FAILED : VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	presence_wait_for_greeting();
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	VkResult result = create(physical, info, allocator, device);
	if (result != VK_SUCCESS) {
		free(made);
		return result;
	}
	fill_device(made, *device, get);
	made->instance_key = instance->key;
	chain_add_device(made);
	if (session_is_open()) {
		struct report_device told;
		portrait_of(instance, physical, &told);
		made->told = (struct session_device){
			.counts = &made->counts, .instance = made->instance_key, .timelines = made->timelines};
		session_device_made(&made->told, &told);
		made->is_told = true;
	}
	return result;
}

VKAPI_ATTR void VKAPI_CALL making_destroy_device(
	VkDevice device, const VkAllocationCallbacks *allocator)
{
	struct layer_device *known = device != NULL ? chain_device(device) : NULL;
	if (known != NULL) {
		if (known->is_told) {
			session_device_gone(&known->told);
		}
		chain_remove_device(known);
		swapchains_finish(known);
		if (known->shaders != NULL) {
			shaders_device_gone(known->shaders, known->key);
		}
		known->destroy(device, allocator);
		labels_destroy(known->labels);
		timelines_destroy(known->timelines);
		free(known);
	}
}
