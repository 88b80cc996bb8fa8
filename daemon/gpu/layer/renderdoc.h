#ifndef GPU_LAYER_RENDERDOC_H
#define GPU_LAYER_RENDERDOC_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/layer/fault.h"
#include "gpu/layer/renderdoc_api.h"
#include "gpu/layer/renderdoc_log.h"

/*
 * RenderDoc as it is in this process, brought in by the Vulkan loader as a layer of its own. Its return values say nothing: a document is
 * one when RenderDoc counts one more and the file is there and is not empty. Not thread-safe: the session's lock is around it.
 */
struct renderdoc {
	const struct renderdoc_api *api; /* NULL: not there, or too old */
	bool is_loaded;
	const void *base; /* where the library is mapped */
	char path[GPU_WIRE_NAME_BYTES];
	char version[24];  /* of the API, as "1.6.0" */
	uint32_t captures; /* counted before the one that is under way */
	struct renderdoc_log log;
};

struct renderdoc_document {
	char path[GPU_WIRE_PATH_BYTES];
	uint64_t bytes;
};

/* Looks whether it is loaded; its keys and its overlay are switched off then. Loads nothing. */
void renderdoc_find(struct renderdoc *renderdoc);

/* The code at this address is RenderDoc's. */
bool renderdoc_holds(const struct renderdoc *renderdoc, const void *code);

/* It can be driven: loaded, and not too old. */
bool renderdoc_check(const struct renderdoc *renderdoc, struct fault *fault);

/* A file can be made beside the template; nothing is left of the attempt. */
bool renderdoc_can_write(const char *template, struct fault *fault);

/* device: the dispatch table of the instance. Begins a capture of what the calling thread and others submit from here on. */
bool renderdoc_begin(
	struct renderdoc *renderdoc, void *device, const char *template, struct fault *fault);
bool renderdoc_end(struct renderdoc *renderdoc, void *device, struct renderdoc_document *document,
	struct fault *fault);

#endif
