#include "gpu/layer/swapchains.h"

#include <stddef.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/session.h"

void swapchains_prepare(struct swapchains *swapchains)
{
	pthread_mutex_init(&swapchains->lock, NULL);
}

/* The one that is held, which is nobody's any more then. VK_NULL_HANDLE: none. */
static VkSwapchainKHR take_held(struct swapchains *swapchains, VkAllocationCallbacks *allocator,
	const VkAllocationCallbacks **with)
{
	pthread_mutex_lock(&swapchains->lock);
	VkSwapchainKHR held = swapchains->held;
	*allocator = swapchains->allocator;
	*with = swapchains->has_allocator ? allocator : NULL;
	swapchains->held = VK_NULL_HANDLE;
	if (held != VK_NULL_HANDLE && held == swapchains->presented) {
		swapchains->presented = VK_NULL_HANDLE;
	}
	pthread_mutex_unlock(&swapchains->lock);
	return held;
}

static void release_held(struct layer_device *device)
{
	VkAllocationCallbacks allocator;
	const VkAllocationCallbacks *with;
	VkSwapchainKHR held = take_held(&device->swapchains, &allocator, &with);
	if (held != VK_NULL_HANDLE) {
		device->destroy_swapchain(device->handle, held, with);
	}
}

static void note_replaced(struct swapchains *swapchains, const VkSwapchainCreateInfoKHR *info)
{
	pthread_mutex_lock(&swapchains->lock);
	if (info->oldSwapchain != VK_NULL_HANDLE && info->oldSwapchain == swapchains->presented) {
		swapchains->replaced = info->oldSwapchain;
		swapchains->surface = info->surface;
	}
	pthread_mutex_unlock(&swapchains->lock);
}

VKAPI_ATTR VkResult VKAPI_CALL swapchains_create(VkDevice handle,
	const VkSwapchainCreateInfoKHR *info, const VkAllocationCallbacks *allocator,
	VkSwapchainKHR *swapchain)
{
	struct layer_device *device = chain_device(handle);
	VkResult result = device->create_swapchain(handle, info, allocator, swapchain);
	if (result == VK_SUCCESS) {
		note_replaced(&device->swapchains, info);
		session_swapchain_made(&device->counts);
	}
	return result;
}

/* False: it is to be destroyed now. */
static bool hold(
	struct layer_device *device, VkSwapchainKHR swapchain, const VkAllocationCallbacks *allocator)
{
	struct swapchains *swapchains = &device->swapchains;
	bool is_recorded = session_records(&device->counts);
	pthread_mutex_lock(&swapchains->lock);
	bool holds = is_recorded && swapchain == swapchains->presented &&
				 swapchain == swapchains->replaced && swapchains->held == VK_NULL_HANDLE;
	if (holds) {
		swapchains->held = swapchain;
		swapchains->has_allocator = allocator != NULL;
		swapchains->allocator = allocator != NULL ? *allocator : (VkAllocationCallbacks){0};
	}
	pthread_mutex_unlock(&swapchains->lock);
	return holds;
}

/* It is to be destroyed: true when it was the last that was presented to. */
static bool forget(struct swapchains *swapchains, VkSwapchainKHR swapchain)
{
	pthread_mutex_lock(&swapchains->lock);
	bool is_last = swapchain == swapchains->presented;
	if (is_last) {
		swapchains->presented = VK_NULL_HANDLE;
	}
	if (swapchain == swapchains->replaced) {
		swapchains->replaced = VK_NULL_HANDLE; /* its handle may come again */
	}
	pthread_mutex_unlock(&swapchains->lock);
	return is_last;
}

VKAPI_ATTR void VKAPI_CALL swapchains_destroy(
	VkDevice handle, VkSwapchainKHR swapchain, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	if (swapchain != VK_NULL_HANDLE && hold(device, swapchain, allocator)) {
		return;
	}
	if (swapchain != VK_NULL_HANDLE && forget(&device->swapchains, swapchain)) {
		session_picture_goes(&device->counts);
	}
	device->destroy_swapchain(handle, swapchain, allocator);
}

static bool holds_of(struct layer_device *device, const void *surface)
{
	struct swapchains *swapchains = &device->swapchains;
	pthread_mutex_lock(&swapchains->lock);
	bool is =
		swapchains->held != VK_NULL_HANDLE && swapchains->surface == *(const VkSurfaceKHR *)surface;
	pthread_mutex_unlock(&swapchains->lock);
	return is;
}

/* A surface outlives its swapchains (VUID-vkDestroySurfaceKHR-surface-01266), so also those that are held. */
VKAPI_ATTR void VKAPI_CALL swapchains_destroy_surface(
	VkInstance handle, VkSurfaceKHR surface, const VkAllocationCallbacks *allocator)
{
	struct layer_instance *instance = chain_instance(handle);
	struct layer_device *device;
	while ((device = chain_search(instance->key, holds_of, &surface)) != NULL) {
		session_picture_goes(&device->counts);
		release_held(device);
	}
	instance->destroy_surface(handle, surface, allocator);
}

void swapchains_presented(struct layer_device *device, const VkPresentInfoKHR *info)
{
	struct swapchains *swapchains = &device->swapchains;
	if (info->swapchainCount == 0) {
		return;
	}
	VkSwapchainKHR last = info->pSwapchains[info->swapchainCount - 1];
	pthread_mutex_lock(&swapchains->lock);
	swapchains->presented = last;
	bool is_free = swapchains->held != VK_NULL_HANDLE && swapchains->held != last;
	pthread_mutex_unlock(&swapchains->lock);
	if (is_free) {
		release_held(device);
	}
}

void swapchains_finish(struct layer_device *device)
{
	release_held(device);
	pthread_mutex_destroy(&device->swapchains.lock);
}
