#include "gpu/layer/handles.h"

void handles_add(
	struct handles *handles, struct handle *handle, const void *device, uint64_t number)
{
	struct handle **bucket = &handles->buckets[handles_bucket(number)];
	handle->device = device;
	handle->number = number;
	handle->next = *bucket;
	*bucket = handle;
}

void *handles_take_out(struct handles *handles, const void *device, uint64_t number)
{
	struct handle **at = &handles->buckets[handles_bucket(number)];
	while (*at != NULL && ((*at)->number != number || (*at)->device != device)) {
		at = &(*at)->next;
	}
	struct handle *handle = *at;
	if (handle != NULL) {
		*at = handle->next;
	}
	return handle;
}

void handles_release(
	struct handles *handles, const void *device, handles_release_fn release, void *context)
{
	for (size_t i = 0; i < HANDLES_BUCKETS; i++) {
		struct handle **at = &handles->buckets[i];
		while (*at != NULL) {
			struct handle *handle = *at, *next = handle->next;
			bool is_meant = device == NULL || handle->device == device;
			if (is_meant && release(context, handle)) {
				*at = next;
			} else {
				at = &handle->next;
			}
		}
	}
}
