#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/asking.h"
#include "gpu/places.h"
#include "gpu/renderdoc.h"
#include "protocol/programs.h"

/* A driver may compile for a while, or hang. */
#define PROBE_MS   10000
#define VERSION_MS 5000
#define SAID_BYTES 8192

#define FIX_DRIVER                                                                                 \
	"install your GPU's driver; without a GPU, mesa-vulkan-drivers (Debian, Ubuntu) has one that " \
	"computes on the processor"

/* "renderdoccmd x64 v1.24 built from …" */
static void ask_version(struct gpu_finding *finding)
{
	static const char *const argv[] = {"renderdoccmd", "version", NULL};
	char said[SAID_BYTES];
	if (!asking_run(argv, NULL, VERSION_MS, said, sizeof(said), NULL)) {
		return; /* it is not needed */
	}
	const char *version = strstr(said, " v");
	if (version != NULL) {
		size_t len = strcspn(version + 2, " \n");
		snprintf(finding->version, sizeof(finding->version), "%.*s", (int)(len < 32 ? len : 32),
			version + 2);
	}
}

/* "cpu UUID NAME" */
static void take_device(struct gpu_finding *finding, const char *line)
{
	size_t used = strlen(finding->devices);
	struct gpu_device device = {.index = finding->device_count};
	if (sscanf(line, "%15s %32s %255[^\n]", device.type, device.uuid, device.name) != 3 ||
		finding->device_count == GPU_FINDING_MOST) {
		return;
	}
	finding->list[finding->device_count++] = device;
	snprintf(finding->devices + used, sizeof(finding->devices) - used, "%s%s", used > 0 ? ", " : "",
		device.name);
}

static bool no_loader(const char *why, struct error *err)
{
	error_set(err, ERROR_BACKEND_UNAVAILABLE, "the Vulkan loader is missing: %s", why);
	error_detail(err, "vulkan_loader_missing");
	return error_hint(err, "install the package libvulkan1 (Debian, Ubuntu) or vulkan-loader");
}

static bool no_driver(const char *const *environment, const char *why, struct error *err)
{
	char where[512];
	size_t count = places_drivers(environment, where, sizeof(where));
	error_set(err, ERROR_BACKEND_UNAVAILABLE,
		"there is no Vulkan driver with a device: %s; %zu drivers' manifests in %s", why, count,
		where);
	error_detail(err, "vulkan_no_driver");
	return error_hint(err, FIX_DRIVER);
}

/* What the probe said, line by line. */
static bool read_said(
	const char *const *environment, char *said, struct gpu_finding *finding, struct error *err)
{
	char *state = NULL, why[128] = "it said nothing of an instance";
	bool has_ended = false;
	for (char *line = strtok_r(said, "\n", &state); line != NULL;
		 line = strtok_r(NULL, "\n", &state)) {
		if (strncmp(line, "loader ", 7) == 0) {
			return no_loader(line + 7, err);
		}
		if (strncmp(line, "instance ", 9) == 0) {
			int result = atoi(line + 9);
			snprintf(why, sizeof(why), result == 0 ? "it has none" : "vkCreateInstance returned %d",
				result);
		} else if (strncmp(line, "device ", 7) == 0) {
			take_device(finding, line + 7);
		}
		has_ended = has_ended || strcmp(line, "end") == 0;
	}
	if (finding->device_count == 0) {
		return no_driver(environment, has_ended ? why : "a driver ended the probe", err);
	}
	return true;
}

static bool ask_vulkan(
	const char *const *environment, struct gpu_finding *finding, struct error *err)
{
	char path[PLACES_PATH_BYTES], said[SAID_BYTES];
	struct error reason = {0};
	if (!programs_find("profd-gpu-probe", path, sizeof(path), err)) {
		return false;
	}
	const char *const argv[] = {path, NULL};
	if (!asking_run(argv, environment, PROBE_MS, said, sizeof(said), &reason)) {
		return no_driver(environment, reason.message, err);
	}
	return read_said(environment, said, finding, err);
}

bool renderdoc_probe(const char *const *environment, struct gpu_finding *finding, struct error *err)
{
	struct places places;
	*finding = (struct gpu_finding){0};
	if (!places_find(environment, &places, err)) {
		return false;
	}
	places_finish(&places);
	ask_version(finding);
	return ask_vulkan(environment, finding, err);
}
