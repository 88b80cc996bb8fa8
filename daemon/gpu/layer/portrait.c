#include "gpu/layer/portrait.h"

#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 64 /* of an instance; the index of a later one is this */

static const char *type_name(VkPhysicalDeviceType type)
{
	switch (type) {
	case VK_PHYSICAL_DEVICE_TYPE_CPU:
		return "cpu";
	case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
		return "discrete";
	case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
		return "integrated";
	case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
		return "virtual";
	default:
		return "other";
	}
}

static unsigned index_of(const struct layer_instance *instance, VkPhysicalDevice physical)
{
	VkPhysicalDevice all[DEVICES_MAX];
	uint32_t count = DEVICES_MAX;
	VkResult result = instance->enumerate(instance->handle, &count, all);
	uint32_t index = 0;
	if (result != VK_SUCCESS && result != VK_INCOMPLETE) {
		return DEVICES_MAX;
	}
	while (index < count && all[index] != physical) {
		index++;
	}
	return index < count ? index : DEVICES_MAX;
}

static void tell_identity(const struct layer_instance *instance, VkPhysicalDevice physical,
	uint32_t device_version, struct report_device *out)
{
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceProperties2 all = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
	if (device_version >= VK_API_VERSION_1_2) {
		id.pNext = &driver;
	}
	instance->properties2(physical, &all);
	for (size_t i = 0; i < VK_UUID_SIZE; i++) {
		snprintf(out->uuid + 2 * i, 3, "%02x", id.deviceUUID[i]);
	}
	if (driver.driverName[0] != '\0') {
		snprintf(out->driver, sizeof(out->driver), "%.100s %.100s", driver.driverName,
			driver.driverInfo);
	}
}

void portrait_of(
	const struct layer_instance *instance, VkPhysicalDevice physical, struct report_device *out)
{
	VkPhysicalDeviceProperties properties;
	memset(out, 0, sizeof(*out));
	instance->properties(physical, &properties);
	snprintf(out->name, sizeof(out->name), "%s", properties.deviceName);
	snprintf(out->driver, sizeof(out->driver), "%u", properties.driverVersion);
	memset(out->uuid, '0', sizeof(out->uuid) - 1);
	out->type = type_name(properties.deviceType);
	out->index = index_of(instance, physical);
	if (instance->properties2 != NULL && instance->api_version >= VK_API_VERSION_1_1 &&
		properties.apiVersion >= VK_API_VERSION_1_1) {
		tell_identity(instance, physical, properties.apiVersion, out);
	}
}
