#ifndef GPU_LAYER_CHAIN_H
#define GPU_LAYER_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <vulkan/vulkan.h>

#include "gpu/layer/frames.h"
#include "gpu/layer/labels.h"
#include "gpu/layer/session.h"
#include "gpu/layer/shaders.h"
#include "gpu/layer/swapchains.h"
#include "gpu/layer/timelines.h"

/*
 * The program's instances and devices, and what is below this layer for each. The loader gives a layer no context: a device is found by
 * the dispatch table that begins its handle and those of its queues and command buffers (LoaderLayerInterface.md, "Layer Dispatch").
 * What was found lives until it is removed, which is the program's to order after all uses. Any thread; one lock is inside.
 */

struct layer_instance {
	struct layer_instance *next;
	void *key; /* its dispatch table: RenderDoc's name of it too */
	VkInstance handle;
	uint32_t api_version; /* that the program asked for */
	PFN_vkGetInstanceProcAddr get;
	PFN_vkDestroyInstance destroy;
	PFN_vkEnumeratePhysicalDevices enumerate;
	PFN_vkEnumeratePhysicalDeviceGroups enumerate_groups,
		enumerate_groups_khr; /* NULL: the chain below does not have it */
	PFN_vkGetPhysicalDeviceProperties properties;
	PFN_vkGetPhysicalDeviceProperties2 properties2;
	PFN_vkDestroySurfaceKHR destroy_surface;
};

/* What is NULL, the chain below does not have. */
struct layer_device {
	struct layer_device *next;
	void *key, *instance_key;
	VkDevice handle;
	bool is_told; /* to profd */
	struct session_device told;
	struct frame_counts counts;
	struct swapchains swapchains;
	struct labels *labels;       /* owned; NULL: nobody listens */
	struct timelines *timelines; /* the same */
	struct shaders *shaders;     /* the process's, borrowed; NULL: nobody listens */
	PFN_vkGetDeviceProcAddr get;
	PFN_vkDestroyDevice destroy;
	PFN_vkQueueSubmit submit;
	PFN_vkQueueSubmit2 submit2, submit2_khr;
	PFN_vkQueueBindSparse bind_sparse;
	PFN_vkQueuePresentKHR present;
	PFN_vkCreateSwapchainKHR create_swapchain;
	PFN_vkDestroySwapchainKHR destroy_swapchain;
	PFN_vkAllocateCommandBuffers allocate;
	PFN_vkFreeCommandBuffers free;
	PFN_vkDestroyCommandPool destroy_pool;
	PFN_vkBeginCommandBuffer begin;
	PFN_vkCmdExecuteCommands execute;
	PFN_vkCmdBeginDebugUtilsLabelEXT begin_label;
	PFN_vkCmdInsertDebugUtilsLabelEXT insert_label;
	PFN_vkCreateSemaphore create_semaphore;
	PFN_vkDestroySemaphore destroy_semaphore;
	PFN_vkSignalSemaphore signal, signal_khr;
	PFN_vkImportSemaphoreFdKHR import_fd;
	PFN_vkCreateShaderModule create_module;
	PFN_vkDestroyShaderModule destroy_module;
	PFN_vkCreateComputePipelines create_compute;
	PFN_vkCreateGraphicsPipelines create_graphics;
	PFN_vkDestroyPipeline destroy_pipeline;
	PFN_vkCmdBindPipeline bind_pipeline;
};

/* The dispatch table that begins a dispatchable handle. */
static inline void *chain_key(const void *handle)
{
	return *(void *const *)handle;
}

/* Takes it. */
void chain_add_instance(struct layer_instance *instance);
void chain_add_device(struct layer_device *device);

/* handle: of an instance or one of its physical devices; of a device, its queue or its command buffer. NULL: unknown. Borrowed. */
struct layer_instance *chain_instance(const void *handle);
struct layer_device *chain_device(const void *handle);

/* A device of the instance that is so; NULL: none. is has the lock, and must not call any of these. */
struct layer_device *chain_search(void *instance_key,
	bool (*is)(struct layer_device *device, const void *context), const void *context);

/* No longer known, and the caller's to free. */
void chain_remove_instance(struct layer_instance *instance);
void chain_remove_device(struct layer_device *device);

#endif
