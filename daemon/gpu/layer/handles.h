#ifndef GPU_LAYER_HANDLES_H
#define GPU_LAYER_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What Vulkan's handles lead to. device: whatever tells devices apart, because two of them may give the same handle. Pure; not thread-safe. Zero is an empty
 * table.
 */
#define HANDLES_BUCKETS_LOG2 10
#define HANDLES_BUCKETS      (1 << HANDLES_BUCKETS_LOG2)

/* The first member of whatever it is. */
struct handle {
	struct handle *next;
	const void *device;
	uint64_t number;
};

struct handles {
	struct handle *buckets[HANDLES_BUCKETS];
};

static inline uint64_t handles_number(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

static inline size_t handles_bucket(uint64_t number)
{
	return (size_t)(number * UINT64_C(0x9E3779B97F4A7C15) >> (64 - HANDLES_BUCKETS_LOG2));
}

/* Borrowed; NULL: there is none. Here, because it is what a bind costs. */
static inline void *handles_find(const struct handles *handles, const void *device, uint64_t number)
{
	struct handle *handle = handles->buckets[handles_bucket(number)];
	while (handle != NULL && (handle->number != number || handle->device != device)) {
		handle = handle->next;
	}
	return handle;
}

/* Takes it. */
void handles_add(
	struct handles *handles, struct handle *handle, const void *device, uint64_t number);
/* The caller's; NULL: there is none. */
void *handles_take_out(struct handles *handles, const void *device, uint64_t number);

/* True: it is released. False: it stays. */
typedef bool (*handles_release_fn)(void *context, struct handle *handle);
/* Each of a device (NULL: of all); those for which release returns true are no longer in the table. */
void handles_release(
	struct handles *handles, const void *device, handles_release_fn release, void *context);

#endif
