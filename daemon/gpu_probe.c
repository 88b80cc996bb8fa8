#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * profd-gpu-probe: asks the Vulkan loader for devices, in a process of its own, because drivers run code of anybody's in whoever asks them, and keep threads.
 * Says "loader TEXT" (it cannot be loaded), "instance NUMBER" (vkCreateInstance's VkResult), "device TYPE NAME" for each, and at last "end". The few
 * structures are as the Vulkan specification has them (chapters 4.2 and 5.1); an ABI, which never changes.
 */
#define DEVICES_MOST 16

struct instance_create_info {
	int32_t type; /* VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO is 1 */
	const void *next;
	uint32_t flags;
	const void *application_info;
	uint32_t layer_count;
	const char *const *layers;
	uint32_t extension_count;
	const char *const *extensions;
};

/* VkPhysicalDeviceProperties; behind these come identity and limits, some 600 bytes. */
struct device_properties {
	uint32_t api_version, driver_version, vendor, device;
	int32_t type;
	char name[256];
	unsigned char rest[4096];
};

typedef int32_t (*create_instance_fn)(
	const struct instance_create_info *info, const void *allocator, void **instance);
typedef int32_t (*enumerate_fn)(void *instance, uint32_t *count, void **devices);
typedef void (*properties_fn)(void *device, struct device_properties *properties);

static const char *const types[] = {"other", "integrated", "discrete", "virtual", "cpu"};

static void tell_devices(void *library, void *instance)
{
	void *devices[DEVICES_MOST] = {0};
	uint32_t count = DEVICES_MOST;
	enumerate_fn enumerate;
	properties_fn get_properties;
	*(void **)&enumerate = dlsym(library, "vkEnumeratePhysicalDevices");
	*(void **)&get_properties = dlsym(library, "vkGetPhysicalDeviceProperties");
	if (enumerate == NULL || get_properties == NULL || enumerate(instance, &count, devices) < 0) {
		return;
	}
	for (uint32_t i = 0; i < count && i < DEVICES_MOST; i++) {
		struct device_properties properties = {0};
		get_properties(devices[i], &properties);
		size_t type = (size_t)properties.type;
		printf("device %s %.255s\n",
			type < sizeof(types) / sizeof(types[0]) ? types[type] : "other", properties.name);
	}
}

int main(void)
{
	const struct instance_create_info info = {.type = 1};
	void *instance = NULL;
	create_instance_fn create;
	void *library = dlopen("libvulkan.so.1", RTLD_NOW);
	if (library == NULL) {
		printf("loader %s\nend\n", dlerror());
		return EXIT_SUCCESS;
	}
	*(void **)&create = dlsym(library, "vkCreateInstance");
	int32_t result = create != NULL ? create(&info, NULL, &instance) : -3;
	printf("instance %d\n", (int)result);
	if (result == 0) {
		tell_devices(library, instance);
	}
	printf("end\n");
	return EXIT_SUCCESS;
}
