/*
 * Windows of X and their displays, as far as the program destroys them by these functions. At a recording's end RenderDoc (1.24) copies what was
 * shown last; where its window or display is gone, X's error handler or the driver ends the program. So a recording ends before.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "gpu/layer/gl/contexts.h"
#include "gpu/layer/session.h"

#define EXPORT __attribute__((visibility("default")))
#define X11    "libX11.so.6"

EXPORT int XDestroyWindow(void *display, unsigned long window);
EXPORT int XCloseDisplay(void *display);

/* Also where a library of the program has it for itself alone (RTLD_LOCAL). NULL: nobody has it. */
static void *find_below(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	if (function == NULL) {
		void *library = dlopen(X11, RTLD_LAZY | RTLD_NOLOAD);
		function = library != NULL ? dlsym(library, name) : NULL;
	}
	return function;
}

int XDestroyWindow(void *display, unsigned long window)
{
	int (*below)(void *, unsigned long) =
		(int (*)(void *, unsigned long))find_below("XDestroyWindow");
	if (session_is_open()) {
		contexts_window_goes(display, window);
	}
	return below != NULL ? below(display, window) : 0;
}

int XCloseDisplay(void *display)
{
	int (*below)(void *) = (int (*)(void *))find_below("XCloseDisplay");
	if (session_is_open()) {
		contexts_display_goes(display);
	}
	return below != NULL ? below(display) : 0;
}
