#include "gpu/manifest.h"

#include "protocol/names.h"

/* No implicit layer may be without one (LoaderLayerInterface.md): it is nobody's. */
#define OFF_SWITCH "PROFD_GPU_RENDERDOC_OFF"

static json_t *smallest(void)
{
	return json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:{s:s}}}",
		"file_format_version", "1.1.2", "layer", "name", MANIFEST_RENDERDOC_LAYER, "type", "GLOBAL",
		"api_version", "1.3.131", "implementation_version", "1", "description",
		"RenderDoc, for a program that profd launched", "functions", "vkGetInstanceProcAddr",
		MANIFEST_RENDERDOC_LAYER "GetInstanceProcAddr", "vkGetDeviceProcAddr",
		MANIFEST_RENDERDOC_LAYER "GetDeviceProcAddr", "vkNegotiateLoaderLayerInterfaceVersion",
		MANIFEST_RENDERDOC_LAYER "NegotiateLoaderLayerInterfaceVersion", "pre_instance_functions",
		"vkEnumerateInstanceExtensionProperties",
		MANIFEST_RENDERDOC_LAYER "EnumerateInstanceExtensionProperties");
}

/* Takes manifest. */
static json_t *with_library(json_t *manifest, const char *library)
{
	json_t *layer = json_object_get(manifest, "layer");
	if (json_object_set_new(layer, "library_path", json_string(library)) != 0) {
		json_decref(manifest);
		return NULL;
	}
	return manifest;
}

json_t *manifest_renderdoc(const json_t *original, const char *library)
{
	json_t *manifest = original != NULL ? json_deep_copy(original) : smallest();
	json_t *layer = json_object_get(manifest, "layer");
	json_object_set_new(layer, "enable_environment", json_pack("{s:s}", ENV_GPU_RENDERDOC, "1"));
	json_object_set_new(layer, "disable_environment", json_pack("{s:s}", OFF_SWITCH, "1"));
	json_object_set_new(layer, "name", json_string(MANIFEST_RENDERDOC_LAYER));
	return with_library(manifest, library);
}

json_t *manifest_layer(const json_t *original, const char *library)
{
	return with_library(json_deep_copy(original), library);
}

const char *manifest_name(const json_t *manifest)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(manifest, "layer"), "name"));
	return name != NULL ? name : "";
}

const char *manifest_off_switch(const json_t *manifest)
{
	json_t *layer = json_object_get(manifest, "layer");
	return json_object_iter_key(json_object_iter(json_object_get(layer, "disable_environment")));
}
