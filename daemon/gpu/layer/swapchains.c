#include "gpu/layer/swapchains.h"

#include <stddef.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/session.h"

void swapchains_prepare(struct swapchains *swapchains)
{
	pthread_mutex_init(&swapchains->lock, NULL);
}

/* NULL: it was not presented to last. The lock is held. */
static struct swapchain_shown *find(struct swapchains *swapchains, VkSwapchainKHR swapchain)
{
	for (unsigned i = 0; i < swapchains->count; i++) {
		if (swapchains->shown[i].swapchain == swapchain) {
			return &swapchains->shown[i];
		}
	}
	return NULL;
}

static void destroy_held(
	struct layer_device *device, const struct swapchain_shown *shown, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (shown[i].is_held) {
			device->destroy_swapchain(device->handle, shown[i].swapchain,
				shown[i].has_allocator ? &shown[i].allocator : NULL);
		}
	}
}

/* Nothing is shown any more. */
static void release(struct layer_device *device)
{
	struct swapchains *swapchains = &device->swapchains;
	pthread_mutex_lock(&swapchains->lock);
	struct swapchains before = *swapchains;
	swapchains->count = 0;
	swapchains->is_overfull = false;
	pthread_mutex_unlock(&swapchains->lock);
	destroy_held(device, before.shown, before.count);
}

static void note_replaced(struct swapchains *swapchains, const VkSwapchainCreateInfoKHR *info)
{
	pthread_mutex_lock(&swapchains->lock);
	struct swapchain_shown *shown = find(swapchains, info->oldSwapchain);
	if (shown != NULL) {
		shown->is_replaced = true;
		shown->surface = info->surface;
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

enum fate {
	FATE_PASSED,         /* it is to be destroyed */
	FATE_ENDS_RECORDING, /* and before that what is recorded ends */
	FATE_HELD,
};

static enum fate decide(
	struct layer_device *device, VkSwapchainKHR swapchain, const VkAllocationCallbacks *allocator)
{
	struct swapchains *swapchains = &device->swapchains;
	bool is_recorded = session_records(&device->counts);
	pthread_mutex_lock(&swapchains->lock);
	struct swapchain_shown *shown = find(swapchains, swapchain);
	enum fate fate = shown != NULL || swapchains->is_overfull ? FATE_ENDS_RECORDING : FATE_PASSED;
	if (shown != NULL && shown->is_replaced && !shown->is_held && is_recorded) {
		shown->is_held = true;
		shown->has_allocator = allocator != NULL;
		shown->allocator = allocator != NULL ? *allocator : (VkAllocationCallbacks){0};
		fate = FATE_HELD;
	} else if (shown != NULL) {
		*shown = swapchains->shown[--swapchains->count]; /* its handle may come again */
	}
	pthread_mutex_unlock(&swapchains->lock);
	return fate;
}

VKAPI_ATTR void VKAPI_CALL swapchains_destroy(
	VkDevice handle, VkSwapchainKHR swapchain, const VkAllocationCallbacks *allocator)
{
	struct layer_device *device = chain_device(handle);
	enum fate fate =
		swapchain != VK_NULL_HANDLE ? decide(device, swapchain, allocator) : FATE_PASSED;
	if (fate == FATE_ENDS_RECORDING) {
		session_picture_goes(&device->counts);
	}
	if (fate != FATE_HELD) {
		device->destroy_swapchain(handle, swapchain, allocator);
	}
}

static bool holds_of(struct layer_device *device, const void *surface)
{
	struct swapchains *swapchains = &device->swapchains;
	bool holds = false;
	pthread_mutex_lock(&swapchains->lock);
	for (unsigned i = 0; i < swapchains->count; i++) {
		holds = holds || (swapchains->shown[i].is_held &&
							 swapchains->shown[i].surface == *(const VkSurfaceKHR *)surface);
	}
	pthread_mutex_unlock(&swapchains->lock);
	return holds;
}

/* A surface outlives its swapchains (VUID-vkDestroySurfaceKHR-surface-01266), so also those that are held. */
VKAPI_ATTR void VKAPI_CALL swapchains_destroy_surface(
	VkInstance handle, VkSurfaceKHR surface, const VkAllocationCallbacks *allocator)
{
	struct layer_instance *instance = chain_instance(handle);
	struct layer_device *device;
	while ((device = chain_search(instance->key, holds_of, &surface)) != NULL) {
		session_picture_goes(&device->counts);
		release(device);
	}
	instance->destroy_surface(handle, surface, allocator);
}

void swapchains_presented(struct layer_device *device, const VkPresentInfoKHR *info)
{
	struct swapchains *swapchains = &device->swapchains;
	pthread_mutex_lock(&swapchains->lock);
	struct swapchains before = *swapchains;
	swapchains->count = 0;
	swapchains->is_overfull = info->swapchainCount > SWAPCHAINS_SHOWN;
	for (uint32_t i = 0; i < info->swapchainCount && i < SWAPCHAINS_SHOWN; i++) {
		swapchains->shown[swapchains->count++] =
			(struct swapchain_shown){.swapchain = info->pSwapchains[i]};
	}
	pthread_mutex_unlock(&swapchains->lock);
	destroy_held(device, before.shown, before.count);
}

void swapchains_finish(struct layer_device *device)
{
	release(device);
	pthread_mutex_destroy(&device->swapchains.lock);
}
