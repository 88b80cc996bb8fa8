#ifndef GPU_LAYER_RENDERDOC_API_H
#define GPU_LAYER_RENDERDOC_API_H

#include <stdint.h>

/*
 * RenderDoc's in-application API, version 1.4.1, as far as it is used here (https://renderdoc.org/docs/in_application_api.html). Later
 * versions keep the places of its functions. The unit test compares them with renderdoc_app.h where that is installed.
 */
#define RENDERDOC_API_1_4_1_NUMBER 10401

/* 1 when the version is there; then *api is a struct renderdoc_api that lives as long as the library. */
typedef int (*renderdoc_get_api_fn)(int version, void **api);

/* A device is named by its instance's dispatch table, windows are not named. */
struct renderdoc_api {
	void (*GetAPIVersion)(int *major, int *minor, int *patch);
	void (*unused_options[4])(void);
	void (*SetFocusToggleKeys)(int *keys, int count);
	void (*SetCaptureKeys)(int *keys, int count);
	uint32_t (*GetOverlayBits)(void);
	void (*MaskOverlayBits)(uint32_t and_bits, uint32_t or_bits);
	void (*unused_hooks[2])(void);
	void (*SetCaptureFilePathTemplate)(const char *path);
	const char *(*GetCaptureFilePathTemplate)(void);
	uint32_t (*GetNumCaptures)(void);
	uint32_t (*GetCapture)(uint32_t index, char *path, uint32_t *path_bytes, uint64_t *unix_s);
	void (*unused_control[4])(void);
	void (*StartFrameCapture)(void *device, void *window);
	uint32_t (*IsFrameCapturing)(void);
	uint32_t (*EndFrameCapture)(void *device, void *window);
	void (*unused_multi)(uint32_t frames);
	void (*unused_comments)(const char *path, const char *comments);
	uint32_t (*DiscardFrameCapture)(void *device, void *window);
};

#endif
