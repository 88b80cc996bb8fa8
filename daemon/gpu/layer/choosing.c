#include "gpu/layer/choosing.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/layer/chain.h"
#include "gpu/layer/devices.h"
#include "gpu/layer/portrait.h"
#include "protocol/gpu_pick.h"

/* Those of an instance that are seen. */
struct choice {
	uint32_t count;
	VkPhysicalDevice devices[GPU_PICK_MOST];
};

static void refuse(const struct layer_instance *instance, const char *wish, enum gpu_pick found,
	const struct gpu_pick_device *devices, size_t count, const bool *chosen)
{
	struct fault fault;
	char names[GPU_WIRE_TEXT_BYTES / 2];
	bool is_ambiguous = found == GPU_PICK_AMBIGUOUS;
	gpu_pick_names(devices, count, is_ambiguous ? chosen : NULL, names, sizeof(names));
	fault_set(&fault, is_ambiguous ? "device_ambiguous" : "device_not_found", "\"%s\" %s; %s: %s%s",
		wish,
		is_ambiguous ? "may be several devices" : "is none of the devices that the program has",
		is_ambiguous ? "these" : "there are", names,
		instance->api_version < VK_API_VERSION_1_1
			? " (uuids are told to programs alone that ask for Vulkan 1.1)"
			: "");
	devices_refuse(&fault);
}

/* False: all are seen. */
static bool pick(const struct layer_instance *instance, const char *wish,
	struct report_device *portraits, struct choice *choice)
{
	struct gpu_pick_device devices[GPU_PICK_MOST] = {0};
	bool chosen[GPU_PICK_MOST];
	size_t count = choice->count;
	for (size_t i = 0; i < count; i++) {
		portrait_of(instance, choice->devices[i], &portraits[i]);
		devices[i] =
			(struct gpu_pick_device){portraits[i].name, portraits[i].uuid, portraits[i].index};
	}
	enum gpu_pick found = gpu_pick(wish, devices, count, chosen);
	if (found != GPU_PICK_FOUND) {
		refuse(instance, wish, found, devices, count, chosen);
		return false;
	}
	devices_accept();
	choice->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (chosen[i]) {
			choice->devices[choice->count++] = choice->devices[i];
		}
	}
	return true;
}

/* False: all that there are are seen. */
static bool choose(const struct layer_instance *instance, struct choice *choice)
{
	const char *wish = devices_wish();
	if (wish == NULL) {
		return false;
	}
	choice->count = GPU_PICK_MOST;
	VkResult result = instance->enumerate(instance->handle, &choice->count, choice->devices);
	struct report_device *portraits = calloc(GPU_PICK_MOST, sizeof(*portraits));
	bool is_chosen = portraits != NULL && (result == VK_SUCCESS || result == VK_INCOMPLETE) &&
					 pick(instance, wish, portraits, choice);
	free(portraits);
	return is_chosen;
}

VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate(
	VkInstance handle, uint32_t *count, VkPhysicalDevice *devices)
{
	struct choice choice;
	const struct layer_instance *instance = chain_instance(handle);
	if (instance == NULL) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	if (!choose(instance, &choice)) {
		return instance->enumerate(handle, count, devices);
	}
	if (devices == NULL) {
		*count = choice.count;
		return VK_SUCCESS;
	}
	*count = *count < choice.count ? *count : choice.count;
	memcpy(devices, choice.devices, *count * sizeof(*devices));
	return *count < choice.count ? VK_INCOMPLETE : VK_SUCCESS;
}

static bool is_chosen(const struct choice *choice, VkPhysicalDevice device)
{
	uint32_t i = 0;
	while (i < choice->count && choice->devices[i] != device) {
		i++;
	}
	return i < choice->count;
}

/* False: nothing is left of it. */
static bool reduce(const struct choice *choice, VkPhysicalDeviceGroupProperties *group)
{
	uint32_t count = group->physicalDeviceCount;
	group->physicalDeviceCount = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (is_chosen(choice, group->physicalDevices[i])) {
			group->physicalDevices[group->physicalDeviceCount++] = group->physicalDevices[i];
		}
	}
	return group->physicalDeviceCount > 0;
}

/* All that are below, at most GPU_PICK_MOST. Owned; NULL: memory is out. */
static VkPhysicalDeviceGroupProperties *all_groups(
	VkInstance handle, PFN_vkEnumeratePhysicalDeviceGroups below, uint32_t *count)
{
	VkPhysicalDeviceGroupProperties *all = calloc(GPU_PICK_MOST, sizeof(*all));
	*count = GPU_PICK_MOST;
	for (uint32_t i = 0; all != NULL && i < *count; i++) {
		all[i].sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GROUP_PROPERTIES;
	}
	if (all != NULL && below(handle, count, all) < 0) {
		free(all);
		return NULL;
	}
	return all;
}

/* What the caller's structure begins with stays. */
static void give(VkPhysicalDeviceGroupProperties *to, const VkPhysicalDeviceGroupProperties *group)
{
	to->physicalDeviceCount = group->physicalDeviceCount;
	memcpy(to->physicalDevices, group->physicalDevices, sizeof(to->physicalDevices));
	to->subsetAllocation = group->subsetAllocation;
}

static VkResult enumerate_groups(VkInstance handle, const struct layer_instance *instance,
	PFN_vkEnumeratePhysicalDeviceGroups below, uint32_t *count,
	VkPhysicalDeviceGroupProperties *groups)
{
	struct choice choice;
	uint32_t found = 0, room = *count, seen = 0;
	if (!choose(instance, &choice)) {
		return below(handle, count, groups);
	}
	VkPhysicalDeviceGroupProperties *all = all_groups(handle, below, &found);
	if (all == NULL) {
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	for (uint32_t i = 0; i < found; i++) {
		if (reduce(&choice, &all[i])) {
			if (groups != NULL && seen < room) {
				give(&groups[seen], &all[i]);
			}
			seen++;
		}
	}
	free(all);
	*count = groups != NULL && room < seen ? room : seen;
	return *count < seen ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate_groups(
	VkInstance handle, uint32_t *count, VkPhysicalDeviceGroupProperties *groups)
{
	const struct layer_instance *instance = chain_instance(handle);
	return instance != NULL
			   ? enumerate_groups(handle, instance, instance->enumerate_groups, count, groups)
			   : VK_ERROR_INITIALIZATION_FAILED;
}

VKAPI_ATTR VkResult VKAPI_CALL choosing_enumerate_groups_khr(
	VkInstance handle, uint32_t *count, VkPhysicalDeviceGroupProperties *groups)
{
	const struct layer_instance *instance = chain_instance(handle);
	return instance != NULL
			   ? enumerate_groups(handle, instance, instance->enumerate_groups_khr, count, groups)
			   : VK_ERROR_INITIALIZATION_FAILED;
}
