#ifndef GPU_PLACES_H
#define GPU_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "protocol/error.h"

/*
 * Where the parts lie that a GPU trace on Linux needs, found by looking at files as the Vulkan loader does
 * (LoaderInterfaceArchitecture.md, "Layer Discovery"); nothing is loaded and nothing is run. environment is a program's,
 * NULL-terminated; NULL: our own. Any thread.
 */
#define PLACES_PATH_BYTES 4096

/* A variable's value; NULL. Borrowed. */
const char *places_variable(const char *const *environment, const char *name);

struct places {
	char layer[PLACES_PATH_BYTES];     /* our layer's library */
	json_t *layer_manifest;            /* owned */
	char nobind[PLACES_PATH_BYTES];    /* the library that keeps RenderDoc's port closed */
	char gl[PLACES_PATH_BYTES];        /* the one for programs of EGL, GLX and GL */
	char renderdoc[PLACES_PATH_BYTES]; /* librenderdoc.so */
	json_t *renderdoc_manifest; /* its own, owned; NULL: there is none that names the library */
};

/*
 * Our layer (the folder $PROFD_GPU_LAYER, that of the build, the installed one) and RenderDoc ($PROFD_RENDERDOC, what a manifest of
 * its layer names, the usual folders). False: err is backend_unavailable with the detail layer_missing or renderdoc_missing, where was
 * looked, and what to install.
 */
bool places_find(const char *const *environment, struct places *places, struct error *err);
void places_finish(struct places *places);

/* How many Vulkan drivers' manifests there are; where (size bytes) tells the variable or the folders that were looked at. */
size_t places_drivers(const char *const *environment, char *where, size_t size);

#endif
