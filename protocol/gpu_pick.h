#ifndef PROTOCOL_GPU_PICK_H
#define PROTOCOL_GPU_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Which GPU a text means, for profd and its layer alike (linked into foreign programs, too: no library but libc). Pure; any thread.
 *
 * It is, in this order: a whole name; digits alone, the index that a device has in the order in which Vulkan tells of them; 32 hexadecimal
 * digits with dashes anywhere, the uuid (VkPhysicalDeviceIDProperties.deviceUUID; one that is all 0 is none); else a part of a name, in any case
 * of letters, when all devices that have it have one name. So equal devices are meant together, unless by index or uuid.
 */
#define GPU_PICK_WISH_BYTES 256 /* of such a text, with NUL */
#define GPU_PICK_MOST       64  /* devices that are looked at */

struct gpu_pick_device {
	const char *name, *uuid; /* uuid: 32 hexadecimal digits */
	uint64_t index;
};

enum gpu_pick {
	GPU_PICK_FOUND,
	GPU_PICK_NONE,
	GPU_PICK_AMBIGUOUS, /* a part of different names */
};

/* chosen[count]: those that are meant or, when ambiguous, that it may be; else none. */
enum gpu_pick gpu_pick(
	const char *wish, const struct gpu_pick_device *devices, size_t count, bool *chosen);

/* "0: NAME, 1: NAME (UUID)", of those chosen (NULL: all), with the uuid where it is known; what does not fit is left out, and "…" stands for it. "none" for none. */
void gpu_pick_names(const struct gpu_pick_device *devices, size_t count, const bool *chosen,
	char *out, size_t size);

#endif
