#ifndef GPU_RENDERDOC_H
#define GPU_RENDERDOC_H

#include "gpu/gpu.h"

/* RenderDoc's documents of Vulkan programs, on Linux. renderdoc_linux.c arms programs for it, renderdoc_probe_linux.c looks whether it can be had. */
extern const struct gpu_backend gpu_renderdoc;

/* struct gpu_backend's probe. Details, in the order of looking: layer_missing, renderdoc_missing, vulkan_loader_missing, vulkan_no_driver. */
bool renderdoc_probe(
	const char *const *environment, struct gpu_finding *finding, struct error *err);

#endif
