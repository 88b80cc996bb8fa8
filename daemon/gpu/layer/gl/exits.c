/*
 * The driver's exit handlers take away what RenderDoc needs to end a recording. Handlers run in the reverse order of their registration,
 * and drivers register theirs whenever they begin to use a part of themselves (Mesa: its queues of threads, at the first draw that needs
 * one). So each registration in the process is followed by one of ours, once something was recorded.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "gpu/layer/presence.h"

#define EXPORT __attribute__((visibility("default")))

/* What atexit and the destructors of C++ come to (Itanium C++ ABI, 3.3.6). */
EXPORT int __cxa_atexit(void (*handler)(void *), void *argument, void *dso);

typedef int add_fn(void (*handler)(void *), void *argument, void *dso);

int __cxa_atexit(void (*handler)(void *), void *argument, void *dso)
{
	/* A race finds the same twice. */
	static add_fn *below;
	add_fn *add = __atomic_load_n(&below, __ATOMIC_RELAXED);
	if (add == NULL) {
		add = (add_fn *)dlsym(RTLD_NEXT, "__cxa_atexit");
		__atomic_store_n(&below, add, __ATOMIC_RELAXED);
	}
	if (add == NULL) {
		return -1;
	}
	int status = add(handler, argument, dso);
	presence_stay_first(add);
	return status;
}
