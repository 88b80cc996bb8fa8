#include "gpu/devices.h"

#include <stdio.h>
#include <string.h>

/* How many were taken. */
static size_t take(
	const struct gpu_device *devices, size_t count, struct gpu_pick_device taken[GPU_PICK_MOST])
{
	count = count < GPU_PICK_MOST ? count : GPU_PICK_MOST;
	for (size_t i = 0; i < count; i++) {
		taken[i] = (struct gpu_pick_device){devices[i].name, devices[i].uuid, devices[i].index};
	}
	return count;
}

enum gpu_pick devices_pick(
	const struct gpu_device *devices, size_t count, const char *wish, bool *chosen)
{
	struct gpu_pick_device taken[GPU_PICK_MOST];
	bool unused[GPU_PICK_MOST];
	count = take(devices, count, taken);
	return gpu_pick(wish, taken, count, chosen != NULL ? chosen : unused);
}

void devices_names(
	const struct gpu_device *devices, size_t count, const bool *chosen, char *out, size_t size)
{
	struct gpu_pick_device taken[GPU_PICK_MOST];
	count = take(devices, count, taken);
	gpu_pick_names(taken, count, chosen, out, size);
}

bool devices_check(const struct gpu_device *devices, size_t count, const char *wish,
	enum error_code code, struct error *err)
{
	bool chosen[GPU_PICK_MOST];
	char names[DEVICES_NAMES_BYTES];
	switch (devices_pick(devices, count, wish, chosen)) {
	case GPU_PICK_FOUND:
		return true;
	case GPU_PICK_NONE:
		devices_names(devices, count, NULL, names, sizeof(names));
		error_set(err, code, "there is no GPU %.80s; there are: %s", wish, names);
		error_detail(err, "device_not_found");
		break;
	case GPU_PICK_AMBIGUOUS:
		devices_names(devices, count, chosen, names, sizeof(names));
		error_set(err, code, "%.80s may be one of several GPUs: %s", wish, names);
		error_detail(err, "device_ambiguous");
		break;
	}
	return error_hint(err, DEVICES_HINT);
}

/* As a whole, between commas. */
static bool is_listed(const char *made, const char *text)
{
	size_t len = strlen(text);
	const char *at = strstr(made, text);
	while (at != NULL && ((at != made && at[-1] != ' ') || (at[len] != '\0' && at[len] != ','))) {
		at = strstr(at + 1, text);
	}
	return at != NULL;
}

void devices_add_name(char *made, size_t size, const struct gpu_device *device)
{
	char text[DEVICES_NAMES_BYTES];
	size_t used = strlen(made);
	devices_names(device, 1, NULL, text, sizeof(text));
	if (!is_listed(made, text) && used + strlen(text) + 3 <= size) {
		snprintf(made + used, size - used, "%s%s", used > 0 ? ", " : "", text);
	}
}
