#ifndef GPU_MANIFEST_H
#define GPU_MANIFEST_H

#include <jansson.h>

#define MANIFEST_RENDERDOC_LAYER "VK_LAYER_RENDERDOC_Capture"

/*
 * Manifests for one program alone (LoaderLayerInterface.md, "Layer Manifest File Format"). original is borrowed. Owned; NULL: memory is out.
 *
 * RenderDoc's layer: the manifest that came with the library (NULL: what every version needs), with a switch of ours (ENV_GPU_RENDERDOC) in place
 * of the one that would also switch on the installed manifest. It stays an implicit layer: only of those does the loader ask which extensions they hide.
 */
json_t *manifest_renderdoc(const json_t *original, const char *library);
/* Ours, as it is, with the library's absolute path. */
json_t *manifest_layer(const json_t *original, const char *library);
/* The layer's; "" when it has none. Borrowed. */
const char *manifest_name(const json_t *manifest);
/* The variable that keeps it out of a program, whatever its value; NULL. Borrowed. */
const char *manifest_off_switch(const json_t *manifest);

#endif
