#include "gpu/fault.h"

#include <string.h>

#include "gpu/devices.h"

#define TEXT_BYTES 1024 /* of what the layer says about it */

static const struct {
	const char *code;
	enum error_code means;
	const char *message, *hint;
} faults[] = {
	{"layer_order", ERROR_BACKEND_UNAVAILABLE,
		"RenderDoc's layer lies above profd's, where it would hang the program",
		"take VK_LAYER_RENDERDOC_Capture out of VK_INSTANCE_LAYERS, and unset "
		"ENABLE_VULKAN_RENDERDOC_CAPTURE"},
	{"renderdoc_missing", ERROR_BACKEND_UNAVAILABLE,
		"RenderDoc is not in the program although its layer was asked for",
		"a sandbox of the program may hide librenderdoc.so; or the Vulkan loader is told to leave "
		"the "
		"layer out, by vkconfig or by the program itself (VK_LOADER_DEBUG=layer shows which "
		"layers it takes)"},
	{"renderdoc_too_old", ERROR_BACKEND_UNAVAILABLE,
		"this RenderDoc has not the interface 1.4.1 that profd needs",
		"install RenderDoc 1.4 or newer"},
	{"document_missing", ERROR_IO, "RenderDoc said that it wrote the document, but there is none",
		"RenderDoc's own log is in $RENDERDOC_TEMP/RenderDoc, by default /tmp/RenderDoc, while the "
		"program runs"},
	{"not_capturing", ERROR_GPU_FRAME_NOT_REACHED,
		"the recording was stopped before its first frame began",
		"let the program work with the GPU before it is stopped"},
	{"nothing_recorded", ERROR_GPU_FRAME_NOT_REACHED,
		"the program gave the GPU nothing from the recording's beginning to its end",
		"let the program run longer, or record an earlier frame (the first is 0)"},
	{"busy", ERROR_CAPTURE_BUSY, "the program is being recorded already, by RenderDoc itself",
		"wait for its end"},
	{"start_failed", ERROR_BACKEND_UNAVAILABLE, "RenderDoc did not begin to record",
		"RenderDoc's own log is in $RENDERDOC_TEMP/RenderDoc, by default /tmp/RenderDoc, while the "
		"program runs"},
	{"device_waits", ERROR_GPU_FRAME_NOT_REACHED,
		"RenderDoc begins and ends a recording only when the device has done all its work, and it "
		"cannot",
		GPU_WAITS_HINT},
	{"descriptor_closed", ERROR_BACKEND_UNAVAILABLE,
		"RenderDoc's log would be written into files of the program's, or the document",
		"let the program close what it has opened alone (not all descriptors, by closefrom or "
		"close_range), or do that before it uses the GPU"},
	{"frame_passed", ERROR_GPU_FRAME_NOT_REACHED, "the first frame has passed",
		"ask for a later start_frame, or for the next frames with frames"},
	{"device_not_found", ERROR_BACKEND_UNAVAILABLE,
		"the GPU that the program was to see is not there, so that it sees all", DEVICES_HINT},
	{"device_ambiguous", ERROR_BACKEND_UNAVAILABLE,
		"the GPU that the program was to see may be one of several, so that it sees all",
		DEVICES_HINT},
	{"no_such_boundary", ERROR_UNSUPPORTED, "the program has no such frames",
		"choose another frame_by, or none"},
	{"output_not_writable", ERROR_IO, "the program cannot write into the capture's folder",
		"choose an output_dir that the program can reach and write"},
};

static void set(struct error *err, size_t i, const char *text)
{
	int len = (int)strnlen(text, TEXT_BYTES);
	error_set(err, faults[i].means, "%s%s%.*s", faults[i].message, len > 0 ? ": " : "", len, text);
	error_detail(err, faults[i].code);
	error_hint(err, "%s", faults[i].hint);
}

void fault_set(struct error *err, const char *code, const char *text)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (strcmp(faults[i].code, code) == 0) {
			set(err, i, text);
			return;
		}
	}
	error_set(err, ERROR_IO, "the recording failed in the program: %.*s", TEXT_BYTES, text);
	error_detail(err, "unknown_fault");
}
