#ifndef GPU_LAYER_SWAPCHAINS_H
#define GPU_LAYER_SWAPCHAINS_H

#include <pthread.h>
#include <stdbool.h>

#include <vulkan/vulkan.h>

#define SWAPCHAINS_SHOWN 8 /* of one present; with more each swapchain counts as shown */

/* One of those that were presented to last. */
struct swapchain_shown {
	VkSwapchainKHR swapchain;
	VkSurfaceKHR surface; /* once it is replaced */
	bool is_replaced;     /* a newer one has its surface */
	bool is_held;         /* and the program has destroyed it, */
	bool has_allocator;   /* with this */
	VkAllocationCallbacks allocator;
};

/*
 * The swapchains that a device has presented to last. At a recording's end RenderDoc (1.24) copies what was presented last (of several that are
 * presented at once it takes the first), also where the swapchain is gone by then, and the program dies of that. So a recording ends before such
 * a swapchain does; but one that a newer one has replaced lives on until the next present, so that a window may change its size while it is
 * recorded.
 *
 * Zero when its device is made. The functions are Vulkan's of these names, passed on; threads as Vulkan has it.
 */
struct swapchains {
	pthread_mutex_t lock;
	struct swapchain_shown shown[SWAPCHAINS_SHOWN];
	unsigned count;
	bool is_overfull;
};

struct layer_device;

void swapchains_prepare(struct swapchains *swapchains);

VKAPI_ATTR VkResult VKAPI_CALL swapchains_create(VkDevice device,
	const VkSwapchainCreateInfoKHR *info, const VkAllocationCallbacks *allocator,
	VkSwapchainKHR *swapchain);
VKAPI_ATTR void VKAPI_CALL swapchains_destroy(
	VkDevice device, VkSwapchainKHR swapchain, const VkAllocationCallbacks *allocator);
VKAPI_ATTR void VKAPI_CALL swapchains_destroy_surface(
	VkInstance instance, VkSurfaceKHR surface, const VkAllocationCallbacks *allocator);

/* After a present, when the session knows of it. */
void swapchains_presented(struct layer_device *device, const VkPresentInfoKHR *info);

/* Before the device is destroyed, when nothing of it is recorded any more. */
void swapchains_finish(struct layer_device *device);

#endif
