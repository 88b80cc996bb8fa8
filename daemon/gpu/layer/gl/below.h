#ifndef GPU_LAYER_GL_BELOW_H
#define GPU_LAYER_GL_BELOW_H

#include <stdbool.h>

/*
 * What the front for EGL, GLX and GL passes calls to: the next library's function of the same name, which is RenderDoc's where that is
 * preloaded behind ours. The types are those of EGL, GLX and GL as a C compiler passes them, so that no headers are needed. What is NULL is
 * in no library of this process. Any thread.
 */
struct below {
#define WORK(name, parameters, arguments) void(*name) parameters;
#include "gpu/layer/gl/work.inc"
#undef WORK
	unsigned (*eglMakeCurrent)(void *display, void *draw, void *read, void *context);
	unsigned (*eglDestroyContext)(void *display, void *context);
	void *(*eglGetCurrentContext)(void);
	unsigned (*eglSwapBuffers)(void *display, void *surface);
	unsigned (*eglSwapBuffersWithDamageKHR)(
		void *display, void *surface, const int *rectangles, int count);
	unsigned (*eglSwapBuffersWithDamageEXT)(
		void *display, void *surface, const int *rectangles, int count);
	void *(*eglGetProcAddress)(const char *name);
	int (*glXMakeCurrent)(void *display, unsigned long drawable, void *context);
	int (*glXMakeContextCurrent)(
		void *display, unsigned long draw, unsigned long read, void *context);
	void (*glXDestroyContext)(void *display, void *context);
	void *(*glXGetCurrentContext)(void);
	void (*glXSwapBuffers)(void *display, unsigned long drawable);
	void *(*glXGetProcAddress)(const unsigned char *name);
	void *(*glXGetProcAddressARB)(const unsigned char *name);
	void (*glPushDebugGroup)(unsigned source, unsigned id, int length, const char *message);
	void (*glPushDebugGroupKHR)(unsigned source, unsigned id, int length, const char *message);
	const unsigned char *(*glGetString)(unsigned name);
};

/* Found at the first call. */
const struct below *below(void);

/* The handle is RenderDoc's: what its dlopen() gives for the libraries whose functions it has itself. */
bool below_is_renderdoc(const void *handle);

/* The code at this address is RenderDoc's. */
bool below_is_renderdocs(const void *code);

#endif
