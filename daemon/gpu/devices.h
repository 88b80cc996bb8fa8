#ifndef GPU_DEVICES_H
#define GPU_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"
#include "protocol/error.h"

/* Which of some GPUs a text means, by protocol/gpu_pick.h. Pure. */

#define DEVICES_NAMES_BYTES 1024 /* of a list of them for people */

/* chosen may be NULL. Only the first GPU_PICK_MOST are looked at. */
enum gpu_pick devices_pick(
	const struct gpu_device *devices, size_t count, const char *wish, bool *chosen);
/* Those that are chosen (NULL: all). */
void devices_names(
	const struct gpu_device *devices, size_t count, const bool *chosen, char *out, size_t size);

/* Adds the device to such a list, once. What does not fit is left out. */
void devices_add_name(char *made, size_t size, const struct gpu_device *device);

/* One is meant. False: err with this code and the detail device_not_found, with what there is, or device_ambiguous, with what it may be; and how a device is named. */
bool devices_check(const struct gpu_device *devices, size_t count, const char *wish,
	enum error_code code, struct error *err);

#define DEVICES_HINT                                                                               \
	"a GPU is named by its name, by a part of it that no other has, by its index (0, 1, …), or " \
	"by "                                                                                          \
	"its uuid"

#endif
