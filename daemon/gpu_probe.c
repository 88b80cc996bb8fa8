#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * profd-gpu-probe: asks the Vulkan loader for devices, in a process of its own, because drivers run code of anybody's in whoever asks them, and keep threads.
 * Says "loader TEXT" (it cannot be loaded), "instance NUMBER" (vkCreateInstance's VkResult), "device TYPE UUID NAME" for each (the uuid in 32 hexadecimal digits, all 0 where it is not told), and at last "end". The few
 * structures are as the Vulkan specification has them (chapters 4.2 and 5.1); an ABI, which never changes.
 */
#define DEVICES_MOST 16

#define VERSION_1_1 ((uint32_t)1 << 22 | (uint32_t)1 << 12)

struct application_info {
	int32_t type; /* VK_STRUCTURE_TYPE_APPLICATION_INFO is 0 */
	const void *next;
	const char *name;
	uint32_t version;
	const char *engine;
	uint32_t engine_version, api_version;
};

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

#define TYPE_PROPERTIES2 1000059001
#define TYPE_ID          1000071004

/* VkPhysicalDeviceIDProperties */
struct id_properties {
	int32_t type;
	void *next;
	uint8_t device_uuid[16], driver_uuid[16], luid[8];
	uint32_t node_mask, is_luid_valid;
};

/* VkPhysicalDeviceProperties2; its properties are aligned to 8 bytes, and shorter than these. */
struct device_properties2 {
	int32_t type;
	void *next;
	_Alignas(8) unsigned char properties[4096];
};

typedef int32_t (*version_fn)(uint32_t *version);
typedef void (*properties2_fn)(void *device, struct device_properties2 *properties);
typedef int32_t (*create_instance_fn)(
	const struct instance_create_info *info, const void *allocator, void **instance);
typedef int32_t (*enumerate_fn)(void *instance, uint32_t *count, void **devices);
typedef void (*properties_fn)(void *device, struct device_properties *properties);

static const char *const types[] = {"other", "integrated", "discrete", "virtual", "cpu"};

/* Vulkan 1.1 is needed for it on all sides. */
static void tell_uuid(void *library, void *device, uint32_t device_version)
{
	struct id_properties id = {.type = TYPE_ID};
	struct device_properties2 properties = {.type = TYPE_PROPERTIES2, .next = &id};
	properties2_fn get_properties;
	*(void **)&get_properties = dlsym(library, "vkGetPhysicalDeviceProperties2");
	if (get_properties != NULL && device_version >= VERSION_1_1) {
		get_properties(device, &properties);
	}
	for (size_t i = 0; i < sizeof(id.device_uuid); i++) {
		printf("%02x", id.device_uuid[i]);
	}
}

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
		printf("device %s ", type < sizeof(types) / sizeof(types[0]) ? types[type] : "other");
		tell_uuid(library, devices[i], properties.api_version);
		printf(" %.255s\n", properties.name);
	}
}

/* 1.0, which takes no other, or 1.1, which has uuids. */
static uint32_t choose_version(void *library)
{
	uint32_t version = 0;
	version_fn get_version;
	*(void **)&get_version = dlsym(library, "vkEnumerateInstanceVersion");
	bool has_more = get_version != NULL && get_version(&version) == 0 && version >= VERSION_1_1;
	return has_more ? VERSION_1_1 : 0;
}

int main(void)
{
	struct application_info application = {.type = 0};
	const struct instance_create_info info = {.type = 1, .application_info = &application};
	void *instance = NULL;
	create_instance_fn create;
	void *library = dlopen("libvulkan.so.1", RTLD_NOW);
	if (library == NULL) {
		printf("loader %s\nend\n", dlerror());
		return EXIT_SUCCESS;
	}
	*(void **)&create = dlsym(library, "vkCreateInstance");
	application.api_version = choose_version(library);
	int32_t result = create != NULL ? create(&info, NULL, &instance) : -3;
	printf("instance %d\n", (int)result);
	if (result == 0) {
		tell_devices(library, instance);
	}
	printf("end\n");
	return EXIT_SUCCESS;
}
