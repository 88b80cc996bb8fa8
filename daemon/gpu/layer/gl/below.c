#include "gpu/layer/gl/below.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array)    (sizeof(array) / sizeof((array)[0]))
#define NAMED(function) .name = #function, .at = offsetof(struct below, function)

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define WORK(name, parameters, arguments) {NAMED(name)},
#include "gpu/layer/gl/work.inc"
#undef WORK
	{NAMED(eglMakeCurrent)},
	{NAMED(eglDestroyContext)},
	{NAMED(eglGetCurrentContext)},
	{NAMED(eglSwapBuffers)},
	{NAMED(eglSwapBuffersWithDamageKHR)},
	{NAMED(eglSwapBuffersWithDamageEXT)},
	{NAMED(eglGetProcAddress)},
	{NAMED(glXMakeCurrent)},
	{NAMED(glXMakeContextCurrent)},
	{NAMED(glXDestroyContext)},
	{NAMED(glXGetCurrentContext)},
	{NAMED(glXSwapBuffers)},
	{NAMED(glXGetProcAddress)},
	{NAMED(glXGetProcAddressARB)},
	{NAMED(glPushDebugGroup)},
	{NAMED(glPushDebugGroupKHR)},
	{NAMED(glGetString)},
};

static struct below found;

static void find_all(void)
{
	for (size_t i = 0; i < COUNT(functions); i++) {
		void *function = dlsym(RTLD_NEXT, functions[i].name);
		memcpy((char *)&found + functions[i].at, &function, sizeof(function));
	}
}

const struct below *below(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_all);
	return &found;
}

/* Without dlopen, which RenderDoc has too. */
static const struct link_map *renderdoc(void)
{
	Dl_info where;
	struct link_map *map = NULL;
	void *api = dlsym(RTLD_DEFAULT, "RENDERDOC_GetAPI");
	return api != NULL && dladdr1(api, &where, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
}

bool below_is_renderdoc(const void *handle)
{
	return handle != NULL && handle == renderdoc();
}

bool below_is_renderdocs(const void *code)
{
	Dl_info where;
	struct link_map *map = NULL;
	return dladdr1(code, &where, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL &&
		   map == renderdoc();
}
