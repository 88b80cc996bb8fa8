#include "gpu/layer/chain.h"

#include <pthread.h>
#include <stddef.h>

static struct {
	pthread_rwlock_t lock;
	struct layer_instance *instances;
	struct layer_device *devices;
} chain = {.lock = PTHREAD_RWLOCK_INITIALIZER};

void chain_add_instance(struct layer_instance *instance)
{
	pthread_rwlock_wrlock(&chain.lock);
	instance->next = chain.instances;
	chain.instances = instance;
	pthread_rwlock_unlock(&chain.lock);
}

void chain_add_device(struct layer_device *device)
{
	pthread_rwlock_wrlock(&chain.lock);
	device->next = chain.devices;
	chain.devices = device;
	pthread_rwlock_unlock(&chain.lock);
}

struct layer_instance *chain_instance(const void *handle)
{
	void *key = chain_key(handle);
	pthread_rwlock_rdlock(&chain.lock);
	struct layer_instance *instance = chain.instances;
	while (instance != NULL && instance->key != key) {
		instance = instance->next;
	}
	pthread_rwlock_unlock(&chain.lock);
	return instance;
}

struct layer_device *chain_device(const void *handle)
{
	void *key = chain_key(handle);
	pthread_rwlock_rdlock(&chain.lock);
	struct layer_device *device = chain.devices;
	while (device != NULL && device->key != key) {
		device = device->next;
	}
	pthread_rwlock_unlock(&chain.lock);
	return device;
}

struct layer_device *chain_search(void *instance_key,
	bool (*is)(struct layer_device *device, const void *context), const void *context)
{
	pthread_rwlock_rdlock(&chain.lock);
	struct layer_device *device = chain.devices;
	while (device != NULL && (device->instance_key != instance_key || !is(device, context))) {
		device = device->next;
	}
	pthread_rwlock_unlock(&chain.lock);
	return device;
}

void chain_remove_instance(struct layer_instance *instance)
{
	pthread_rwlock_wrlock(&chain.lock);
	struct layer_instance **at = &chain.instances;
	while (*at != NULL && *at != instance) {
		at = &(*at)->next;
	}
	if (*at != NULL) {
		*at = instance->next;
	}
	pthread_rwlock_unlock(&chain.lock);
}

void chain_remove_device(struct layer_device *device)
{
	pthread_rwlock_wrlock(&chain.lock);
	struct layer_device **at = &chain.devices;
	while (*at != NULL && *at != device) {
		at = &(*at)->next;
	}
	if (*at != NULL) {
		*at = device->next;
	}
	pthread_rwlock_unlock(&chain.lock);
}
