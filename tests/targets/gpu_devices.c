/*
 * A Vulkan program of several devices:
 *
 *   gpu_devices list [1.0|1.1|khr]   prints the devices and groups that it sees, asked for in every way the specification has
 *   gpu_devices work FRAMES MS       makes a VkDevice of each device that it sees, each in an instance of its own, and gives them by turns one submit a
 *                                    frame, under a label "NAME frame N"; prints how many of each
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vulkan.h>

#include "gpu/check.h"

#define MOST 8

struct user {
	VkInstance instance;
	VkPhysicalDevice physical;
	char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
	VkDevice device;
	VkQueue queue;
	VkCommandPool pool;
	VkCommandBuffer buffer;
	PFN_vkCmdBeginDebugUtilsLabelEXT begin_label;
	PFN_vkCmdEndDebugUtilsLabelEXT end_label;
};

static VkInstance make_instance(uint32_t version, const char *extension)
{
	VkInstance instance;
	VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = version};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
		.enabledExtensionCount = extension != NULL,
		.ppEnabledExtensionNames = &extension};
	CHECK(vkCreateInstance(&info, NULL, &instance));
	return instance;
}

static void name_of(VkPhysicalDevice physical, char *name)
{
	VkPhysicalDeviceProperties properties;
	vkGetPhysicalDeviceProperties(physical, &properties);
	memcpy(name, properties.deviceName, sizeof(properties.deviceName));
}

/* With room for `room`, which may be too little or too much. */
static void list_devices(VkInstance instance, uint32_t room)
{
	VkPhysicalDevice devices[MOST + 1] = {0};
	char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
	uint32_t count = room;
	VkResult result = vkEnumeratePhysicalDevices(instance, &count, devices);
	printf("room %u: %d, %u", room, (int)result, count);
	for (uint32_t i = 0; i < count; i++) {
		name_of(devices[i], name);
		printf("; %s", name);
	}
	printf("%s\n", devices[count] == NULL ? "" : "; written beyond");
}

static void list_groups(
	VkInstance instance, PFN_vkEnumeratePhysicalDeviceGroups enumerate, uint32_t room)
{
	VkPhysicalDeviceGroupProperties groups[MOST + 1];
	char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
	uint32_t count = room;
	for (size_t i = 0; i <= MOST; i++) {
		groups[i] = (VkPhysicalDeviceGroupProperties){
			.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GROUP_PROPERTIES};
	}
	VkResult result = enumerate(instance, &count, groups);
	printf("groups, room %u: %d, %u", room, (int)result, count);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < groups[i].physicalDeviceCount; k++) {
			name_of(groups[i].physicalDevices[k], name);
			printf("%s %s", k > 0 ? " +" : ";", name);
		}
	}
	printf("%s\n", groups[count].physicalDeviceCount == 0 ? "" : "; written beyond");
}

static int list(const char *how)
{
	uint32_t count = 0, groups = 0;
	bool is_khr = strcmp(how, "khr") == 0, is_old = strcmp(how, "1.0") == 0;
	VkInstance instance = make_instance(is_khr || is_old ? VK_API_VERSION_1_0 : VK_API_VERSION_1_1,
		is_khr ? VK_KHR_DEVICE_GROUP_CREATION_EXTENSION_NAME : NULL);
	CHECK(vkEnumeratePhysicalDevices(instance, &count, NULL));
	printf("devices: %u\n", count);
	for (uint32_t room = 0; room <= count + 1 && room <= MOST; room++) {
		list_devices(instance, room);
	}
	PFN_vkEnumeratePhysicalDeviceGroups enumerate =
		is_old ? NULL
			   : (PFN_vkEnumeratePhysicalDeviceGroups)vkGetInstanceProcAddr(
					 instance, is_khr ? "vkEnumeratePhysicalDeviceGroupsKHR"
									  : "vkEnumeratePhysicalDeviceGroups");
	if (enumerate != NULL) {
		CHECK(enumerate(instance, &groups, NULL));
		printf("groups: %u\n", groups);
		for (uint32_t room = 0; room <= groups + 1 && room <= MOST; room++) {
			list_groups(instance, enumerate, room);
		}
	}
	vkDestroyInstance(instance, NULL);
	return EXIT_SUCCESS;
}

static void make_device(struct user *user)
{
	float priority = 1;
	VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue};
	CHECK(vkCreateDevice(user->physical, &info, NULL, &user->device));
	vkGetDeviceQueue(user->device, 0, 0, &user->queue);
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
	CHECK(vkCreateCommandPool(user->device, &pool, NULL, &user->pool));
	VkCommandBufferAllocateInfo buffer = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.commandPool = user->pool,
		.commandBufferCount = 1};
	CHECK(vkAllocateCommandBuffers(user->device, &buffer, &user->buffer));
}

/* False: there is no such device. */
static bool make_user(struct user *user, uint32_t index)
{
	VkPhysicalDevice devices[MOST];
	uint32_t count = MOST;
	user->instance = make_instance(VK_API_VERSION_1_1, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
	CHECK(vkEnumeratePhysicalDevices(user->instance, &count, devices));
	if (index >= count) {
		vkDestroyInstance(user->instance, NULL);
		return false;
	}
	user->physical = devices[index];
	name_of(user->physical, user->name);
	user->begin_label = (PFN_vkCmdBeginDebugUtilsLabelEXT)vkGetInstanceProcAddr(
		user->instance, "vkCmdBeginDebugUtilsLabelEXT");
	user->end_label = (PFN_vkCmdEndDebugUtilsLabelEXT)vkGetInstanceProcAddr(
		user->instance, "vkCmdEndDebugUtilsLabelEXT");
	make_device(user);
	return true;
}

static void submit_frame(struct user *user, int frame)
{
	char text[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE + 32];
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
	VkDebugUtilsLabelEXT label = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = text};
	snprintf(text, sizeof(text), "%s frame %d", user->name, frame);
	CHECK(vkBeginCommandBuffer(user->buffer, &begin));
	user->begin_label(user->buffer, &label);
	user->end_label(user->buffer);
	CHECK(vkEndCommandBuffer(user->buffer));
	VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
		.commandBufferCount = 1,
		.pCommandBuffers = &user->buffer};
	CHECK(vkQueueSubmit(user->queue, 1, &submit, VK_NULL_HANDLE));
	CHECK(vkQueueWaitIdle(user->queue));
}

static int work(int frames, int ms)
{
	struct user users[MOST] = {0};
	uint32_t count = 0;
	while (count < MOST && make_user(&users[count], count)) {
		count++;
	}
	for (int frame = 0; frame < frames; frame++) {
		for (uint32_t i = 0; i < count; i++) {
			submit_frame(&users[i], frame);
		}
		usleep((useconds_t)ms * 1000);
	}
	for (uint32_t i = 0; i < count; i++) {
		printf("%s: %d frames\n", users[i].name, frames);
		vkDestroyCommandPool(users[i].device, users[i].pool, NULL);
		vkDestroyDevice(users[i].device, NULL);
		vkDestroyInstance(users[i].instance, NULL);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "list") == 0) {
		return list(argc > 2 ? argv[2] : "1.1");
	}
	if (argc == 4 && strcmp(argv[1], "work") == 0) {
		return work(atoi(argv[2]), atoi(argv[3]));
	}
	fprintf(stderr, "usage: gpu_devices list [1.0|1.1|khr] | gpu_devices work FRAMES MS\n");
	return 2;
}
