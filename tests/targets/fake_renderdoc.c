/*
 * A librenderdoc.so that fails where the real one can fail, and says that all is well as the real one does. As a Vulkan layer it passes
 * everything on. FAKE_RENDERDOC chooses: old (no API 1.4.1), deaf (a start does nothing), silent (no capture is counted), lost (counted, no
 * file), empty (an empty file), good (a file of a few bytes).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "gpu/layer/renderdoc_api.h"

VK_LAYER_EXPORT VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
	VkNegotiateLayerInterface *offer);
VK_LAYER_EXPORT int RENDERDOC_GetAPI(int version, void **api);

static struct {
	PFN_vkGetInstanceProcAddr get_instance;
	PFN_vkGetDeviceProcAddr get_device;
	VkInstance instance;
	char template[512], path[600];
	uint32_t captures;
	uint32_t is_capturing;
} fake;

static int is_way(const char *way)
{
	const char *chosen = getenv("FAKE_RENDERDOC");
	return chosen != NULL && strcmp(chosen, way) == 0;
}

/* The API. */

static void tell_version(int *major, int *minor, int *patch)
{
	*major = 1;
	*minor = 4;
	*patch = 2;
}

static void set_keys(int *keys, int count)
{
	(void)keys, (void)count;
}

static void mask_overlay(uint32_t and_bits, uint32_t or_bits)
{
	(void)and_bits, (void)or_bits;
}

static void set_template(const char *path)
{
	snprintf(fake.template, sizeof(fake.template), "%s", path);
}

static uint32_t count_captures(void)
{
	return fake.captures;
}

static uint32_t tell_capture(uint32_t index, char *path, uint32_t *path_bytes, uint64_t *unix_s)
{
	(void)index, (void)unix_s;
	*path_bytes = (uint32_t)strlen(fake.path) + 1;
	if (path != NULL) {
		memcpy(path, fake.path, *path_bytes);
	}
	return 1;
}

static void start(void *device, void *window)
{
	(void)window;
	fake.is_capturing = device != NULL && !is_way("deaf");
}

static uint32_t tell_capturing(void)
{
	return fake.is_capturing;
}

static uint32_t end(void *device, void *window)
{
	(void)device, (void)window;
	fake.is_capturing = 0;
	if (!is_way("silent")) {
		fake.captures++;
		snprintf(fake.path, sizeof(fake.path), "%s_capture.rdc", fake.template);
	}
	if (is_way("empty") || is_way("good")) {
		FILE *file = fopen(fake.path, "w");
		if (file != NULL) {
			fputs(is_way("good") ? "RDOC" : "", file);
			fclose(file);
		}
	}
	return 1;
}

static const struct renderdoc_api api = {
	.GetAPIVersion = tell_version,
	.SetFocusToggleKeys = set_keys,
	.SetCaptureKeys = set_keys,
	.MaskOverlayBits = mask_overlay,
	.SetCaptureFilePathTemplate = set_template,
	.GetNumCaptures = count_captures,
	.GetCapture = tell_capture,
	.StartFrameCapture = start,
	.IsFrameCapturing = tell_capturing,
	.EndFrameCapture = end,
};

VK_LAYER_EXPORT int RENDERDOC_GetAPI(int version, void **out)
{
	if (is_way("old") || version != RENDERDOC_API_1_4_1_NUMBER) {
		return 0;
	}
	memcpy(out, &(const void *){&api}, sizeof(*out));
	return 1;
}

/* The layer, for one instance and one device. */

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(
	const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance)
{
	VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
	while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
		   link->function != VK_LAYER_LINK_INFO) {
		link = (VkLayerInstanceCreateInfo *)link->pNext;
	}
	fake.get_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	PFN_vkCreateInstance create = (PFN_vkCreateInstance)fake.get_instance(NULL, "vkCreateInstance");
	VkResult result = create(info, allocator, instance);
	fake.instance = *instance;
	return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
	const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device)
{
	VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)info->pNext;
	while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
		   link->function != VK_LAYER_LINK_INFO) {
		link = (VkLayerDeviceCreateInfo *)link->pNext;
	}
	fake.get_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
	PFN_vkCreateDevice create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(
		fake.instance, "vkCreateDevice");
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	return create(physical, info, allocator, device);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char *name)
{
	return fake.get_device(device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_instance(VkInstance instance, const char *name)
{
	if (strcmp(name, "vkCreateInstance") == 0) {
		return (PFN_vkVoidFunction)create_instance;
	}
	if (strcmp(name, "vkCreateDevice") == 0) {
		return (PFN_vkVoidFunction)create_device;
	}
	return fake.get_instance != NULL ? fake.get_instance(instance, name) : NULL;
}

VK_LAYER_EXPORT VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(
	VkNegotiateLayerInterface *offer)
{
	offer->loaderLayerInterfaceVersion = 2;
	offer->pfnGetInstanceProcAddr = get_instance;
	offer->pfnGetDeviceProcAddr = get_device;
	offer->pfnGetPhysicalDeviceProcAddr = NULL;
	return VK_SUCCESS;
}
