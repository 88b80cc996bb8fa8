/*
 * The functions of EGL, GLX and GL in which frames begin and end, as the program sees them: counted and passed on. This library lies before
 * RenderDoc in LD_PRELOAD, so that programs that are linked with them find these; those that ask for them by name get these too
 * (…GetProcAddress; dlopen, because RenderDoc gives its own handle for the libraries of EGL and GL, and here it becomes ours, which needs
 * RenderDoc and so has all its names).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "gpu/layer/gl/below.h"
#include "gpu/layer/gl/contexts.h"
#include "gpu/layer/session.h"

#define EXPORT       __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LABEL_BYTES  256 /* of a group's name, with NUL, when it has no NUL of its own */

EXPORT unsigned eglMakeCurrent(void *display, void *draw, void *read, void *context);
EXPORT unsigned eglDestroyContext(void *display, void *context);
EXPORT unsigned eglSwapBuffers(void *display, void *surface);
EXPORT unsigned eglSwapBuffersWithDamageKHR(
	void *display, void *surface, const int *rectangles, int count);
EXPORT unsigned eglSwapBuffersWithDamageEXT(
	void *display, void *surface, const int *rectangles, int count);
EXPORT void *eglGetProcAddress(const char *name);
EXPORT int glXMakeCurrent(void *display, unsigned long drawable, void *context);
EXPORT int glXMakeContextCurrent(
	void *display, unsigned long draw, unsigned long read, void *context);
EXPORT void glXDestroyContext(void *display, void *context);
EXPORT void glXSwapBuffers(void *display, unsigned long drawable);
EXPORT void *glXGetProcAddress(const unsigned char *name);
EXPORT void *glXGetProcAddressARB(const unsigned char *name);
EXPORT void glPushDebugGroup(unsigned source, unsigned id, int length, const char *message);
EXPORT void glPushDebugGroupKHR(unsigned source, unsigned id, int length, const char *message);
EXPORT void *dlopen(const char *path, int flags);

/* A library of GL may present through another's function of these here: then it is the outer call that counts. */
static __thread unsigned depth;

static void *current_of_egl(void)
{
	return below()->eglGetCurrentContext != NULL ? below()->eglGetCurrentContext() : NULL;
}

static void *current_of_glx(void)
{
	return below()->glXGetCurrentContext != NULL ? below()->glXGetCurrentContext() : NULL;
}

static void *current(void)
{
	void *context = current_of_egl();
	return context != NULL ? context : current_of_glx();
}

/* Another, or none, is about to be current in this thread. */
static void leave(const void *next)
{
	const void *now = session_is_open() ? current() : NULL;
	if (now != NULL && now != next) {
		contexts_released(now);
	}
}

unsigned eglMakeCurrent(void *display, void *draw, void *read, void *context)
{
	if (below()->eglMakeCurrent == NULL) {
		return 0;
	}
	contexts_prepare(context);
	leave(context);
	unsigned result = below()->eglMakeCurrent(display, draw, read, context);
	if (result != 0) {
		contexts_current(context);
		contexts_draw_into(context, display, 0);
	}
	return result;
}

unsigned eglDestroyContext(void *display, void *context)
{
	if (below()->eglDestroyContext == NULL) {
		return 0;
	}
	contexts_gone(context);
	return below()->eglDestroyContext(display, context);
}

static unsigned egl_presented(unsigned result)
{
	depth--;
	if (result != 0 && depth == 0) {
		contexts_presented(current_of_egl());
	}
	return result;
}

unsigned eglSwapBuffers(void *display, void *surface)
{
	if (below()->eglSwapBuffers == NULL) {
		return 0;
	}
	depth++;
	return egl_presented(below()->eglSwapBuffers(display, surface));
}

unsigned eglSwapBuffersWithDamageKHR(void *display, void *surface, const int *rectangles, int count)
{
	if (below()->eglSwapBuffersWithDamageKHR == NULL) {
		return 0;
	}
	depth++;
	return egl_presented(below()->eglSwapBuffersWithDamageKHR(display, surface, rectangles, count));
}

unsigned eglSwapBuffersWithDamageEXT(void *display, void *surface, const int *rectangles, int count)
{
	if (below()->eglSwapBuffersWithDamageEXT == NULL) {
		return 0;
	}
	depth++;
	return egl_presented(below()->eglSwapBuffersWithDamageEXT(display, surface, rectangles, count));
}

int glXMakeCurrent(void *display, unsigned long drawable, void *context)
{
	if (below()->glXMakeCurrent == NULL) {
		return 0;
	}
	contexts_prepare(context);
	leave(context);
	int result = below()->glXMakeCurrent(display, drawable, context);
	if (result != 0) {
		contexts_current(context);
		contexts_draw_into(context, display, drawable);
	}
	return result;
}

int glXMakeContextCurrent(void *display, unsigned long draw, unsigned long read, void *context)
{
	if (below()->glXMakeContextCurrent == NULL) {
		return 0;
	}
	contexts_prepare(context);
	leave(context);
	int result = below()->glXMakeContextCurrent(display, draw, read, context);
	if (result != 0) {
		contexts_current(context);
		contexts_draw_into(context, display, draw);
	}
	return result;
}

void glXDestroyContext(void *display, void *context)
{
	if (below()->glXDestroyContext != NULL) {
		contexts_gone(context);
		below()->glXDestroyContext(display, context);
	}
}

void glXSwapBuffers(void *display, unsigned long drawable)
{
	if (below()->glXSwapBuffers == NULL) {
		return;
	}
	depth++;
	below()->glXSwapBuffers(display, drawable);
	depth--;
	if (depth == 0) {
		contexts_draw_into(current_of_glx(), display, drawable);
		contexts_presented(current_of_glx());
	}
}

/* length: below 0 when message ends with a NUL. */
static void tell_label(int length, const char *message)
{
	char label[LABEL_BYTES];
	void *context = session_is_open() ? current() : NULL;
	if (context == NULL || message == NULL) {
		return;
	}
	size_t len = length < 0 ? strnlen(message, sizeof(label) - 1) : (size_t)length;
	len = len < sizeof(label) - 1 ? len : sizeof(label) - 1;
	memcpy(label, message, len);
	label[len] = '\0';
	contexts_labelled(context, label);
}

void glPushDebugGroup(unsigned source, unsigned id, int length, const char *message)
{
	tell_label(length, message);
	if (below()->glPushDebugGroup != NULL) {
		below()->glPushDebugGroup(source, id, length, message);
	}
}

void glPushDebugGroupKHR(unsigned source, unsigned id, int length, const char *message)
{
	tell_label(length, message);
	if (below()->glPushDebugGroupKHR != NULL) {
		below()->glPushDebugGroupKHR(source, id, length, message);
	}
}

#define WORK(name, parameters, arguments)                                                          \
	EXPORT void name parameters;                                                                   \
	void name parameters                                                                           \
	{                                                                                              \
		if (session_wants_work()) {                                                                \
			contexts_working(current());                                                           \
		}                                                                                          \
		if (below()->name != NULL) {                                                               \
			below()->name arguments;                                                               \
		}                                                                                          \
	}
#include "gpu/layer/gl/work.inc"
#undef WORK

typedef void (*any_fn)(void);

#define OURS(function) .name = #function, .ours = (any_fn)function

static const struct {
	const char *name;
	any_fn ours;
} by_name[] = {
#define WORK(name, parameters, arguments) {OURS(name)},
#include "gpu/layer/gl/work.inc"
#undef WORK
	{OURS(eglMakeCurrent)},
	{OURS(eglDestroyContext)},
	{OURS(eglSwapBuffers)},
	{OURS(eglSwapBuffersWithDamageKHR)},
	{OURS(eglSwapBuffersWithDamageEXT)},
	{OURS(eglGetProcAddress)},
	{OURS(glXMakeCurrent)},
	{OURS(glXMakeContextCurrent)},
	{OURS(glXDestroyContext)},
	{OURS(glXSwapBuffers)},
	{OURS(glXGetProcAddress)},
	{OURS(glXGetProcAddressARB)},
	{OURS(glPushDebugGroup)},
	{OURS(glPushDebugGroupKHR)},
};

/* Ours for what is there below. */
static void *ours_for(const char *name, void *there)
{
	for (size_t i = 0; there != NULL && i < COUNT(by_name); i++) {
		if (strcmp(name, by_name[i].name) == 0) {
			memcpy(&there, &by_name[i].ours, sizeof(there));
		}
	}
	return there;
}

void *eglGetProcAddress(const char *name)
{
	return below()->eglGetProcAddress != NULL ? ours_for(name, below()->eglGetProcAddress(name))
											  : NULL;
}

void *glXGetProcAddress(const unsigned char *name)
{
	return below()->glXGetProcAddress != NULL
			   ? ours_for((const char *)name, below()->glXGetProcAddress(name))
			   : NULL;
}

void *glXGetProcAddressARB(const unsigned char *name)
{
	return below()->glXGetProcAddressARB != NULL
			   ? ours_for((const char *)name, below()->glXGetProcAddressARB(name))
			   : NULL;
}

static bool is_named_renderdoc(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strncmp(slash != NULL ? slash + 1 : path, "librenderdoc", strlen("librenderdoc")) == 0;
}

/* below() is not asked: RenderDoc opens libraries before it, and this, is ready. */
void *dlopen(const char *path, int flags)
{
	Dl_info own;
	void *(*next)(const char *, int), *found = dlsym(RTLD_NEXT, "dlopen");
	memcpy(&next, &found, sizeof(next));
	void *handle = next != NULL ? next(path, flags) : NULL;
	if (path == NULL || is_named_renderdoc(path) || !below_is_renderdoc(handle) ||
		below_is_renderdocs(__builtin_return_address(0)) || dladdr(by_name, &own) == 0) {
		return handle;
	}
	dlclose(handle);
	return next(own.dli_fname, flags | RTLD_NOLOAD);
}
