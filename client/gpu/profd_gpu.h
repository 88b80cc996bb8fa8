#ifndef PROFD_GPU_H
#define PROFD_GPU_H

/*
 * Records what a program does with the GPU, from within the program: for engines that know their own phases.
 *
 *     profd_gpu_start("pre-render");
 *     ...                               what is submitted to the GPU from here on is in the document, exactly,
 *     profd_gpu_stop();                 until here; the document is written when it returns
 *
 * A program that profd did not arm (LaunchProcess with gpu, profctl gpu) pays a few nanoseconds and gets PROFD_GPU_NOT_ARMED. Nothing
 * but this file is needed, and libdl where that is a library of its own; C11 and C++11, gcc and clang. Any thread.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What start and stop return: 0, or one of these. profd_gpu_error has the words. */
enum profd_gpu_status {
	PROFD_GPU_OK = 0,
	PROFD_GPU_NOT_ARMED = -1,     /* nobody launched the program for it, or profd is gone */
	PROFD_GPU_NO_DEVICE = -2,     /* the program has made no device yet */
	PROFD_GPU_BUSY = -3,          /* something is recorded already, or waits to be */
	PROFD_GPU_NOT_CAPTURING = -4, /* nothing to stop: no start, or it has ended already */
	PROFD_GPU_REFUSED = -5,       /* profd does not want it; too many, no room on the disk */
	PROFD_GPU_NO_ANSWER = -6,     /* profd said nothing for two seconds */
	PROFD_GPU_FAILED = -7         /* it could not begin, or the document not be written */
};

/* What profd's layer in this process has for us; filled once it is there. In every object file anew. */
struct profd_gpu_layer {
	int (*start)(const char *label);
	int (*stop)(void);
	int (*is_armed)(void);
	const char *(*error)(void);
};

enum profd_gpu_found {
	PROFD_GPU_UNKNOWN,
	PROFD_GPU_NEVER, /* the program is not armed, and never will be */
	PROFD_GPU_FOUND
};

static int profd_gpu_found_;
static struct profd_gpu_layer profd_gpu_layer_;

/* A function of the layer's; false: it has none of that name. */
static inline int profd_gpu_find_(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);
	memcpy(function, &found, sizeof(found));
	return found != NULL;
}

/* The loader of the GPU's programming interface brings the layer in, never we. Several threads may come here at once: they find the same. */
static inline int profd_gpu_look_(void)
{
	struct profd_gpu_layer layer;
	const char *path = getenv("PROFD_GPU_LIBRARY");
	int found = PROFD_GPU_UNKNOWN;
	void *library = NULL;
	if (path == NULL || path[0] != '/') {
		found = PROFD_GPU_NEVER;
	} else {
		library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	}
	if (library != NULL && profd_gpu_find_(library, "profd_gpu_layer_start", &layer.start) &&
		profd_gpu_find_(library, "profd_gpu_layer_stop", &layer.stop) &&
		profd_gpu_find_(library, "profd_gpu_layer_is_armed", &layer.is_armed) &&
		profd_gpu_find_(library, "profd_gpu_layer_error", &layer.error)) {
		__atomic_store_n(&profd_gpu_layer_.start, layer.start, __ATOMIC_RELAXED);
		__atomic_store_n(&profd_gpu_layer_.stop, layer.stop, __ATOMIC_RELAXED);
		__atomic_store_n(&profd_gpu_layer_.is_armed, layer.is_armed, __ATOMIC_RELAXED);
		__atomic_store_n(&profd_gpu_layer_.error, layer.error, __ATOMIC_RELAXED);
		found = PROFD_GPU_FOUND;
	} else if (library != NULL) {
		dlclose(library);
		found = PROFD_GPU_NEVER;
	}
	__atomic_store_n(&profd_gpu_found_, found, __ATOMIC_RELEASE);
	return found;
}

static inline int profd_gpu_layer_found_(void)
{
	int found = __atomic_load_n(&profd_gpu_found_, __ATOMIC_ACQUIRE);
	return found != PROFD_GPU_UNKNOWN ? found : profd_gpu_look_();
}

/*
 * From here on all that is submitted is recorded; the next submit is the first. Asks profd, and waits at most two seconds for its answer.
 * label is for people (NULL: none). Negative: nothing is recorded.
 */
static inline int profd_gpu_start(const char *label)
{
	int found = profd_gpu_layer_found_();
	if (found == PROFD_GPU_FOUND) {
		return __atomic_load_n(&profd_gpu_layer_.start, __ATOMIC_RELAXED)(label);
	}
	return found == PROFD_GPU_NEVER ? PROFD_GPU_NOT_ARMED : PROFD_GPU_NO_DEVICE;
}

/* Ends what start began; 0: the document is written. From any thread. */
static inline int profd_gpu_stop(void)
{
	int found = profd_gpu_layer_found_();
	if (found == PROFD_GPU_FOUND) {
		return __atomic_load_n(&profd_gpu_layer_.stop, __ATOMIC_RELAXED)();
	}
	return found == PROFD_GPU_NEVER ? PROFD_GPU_NOT_ARMED : PROFD_GPU_NOT_CAPTURING;
}

/* 1: profd waits for the program's wishes. */
static inline int profd_gpu_is_armed(void)
{
	int found = profd_gpu_layer_found_();
	return found == PROFD_GPU_FOUND
			   ? __atomic_load_n(&profd_gpu_layer_.is_armed, __ATOMIC_RELAXED)()
			   : found != PROFD_GPU_NEVER;
}

/* Why this thread's last start or stop failed, one sentence; "" when it did not. Valid until its next one. */
static inline const char *profd_gpu_error(void)
{
	int found = profd_gpu_layer_found_();
	if (found == PROFD_GPU_FOUND) {
		return __atomic_load_n(&profd_gpu_layer_.error, __ATOMIC_RELAXED)();
	}
	return found == PROFD_GPU_NEVER ? "the program was not launched for GPU traces (LaunchProcess "
									  "with gpu, or profctl gpu)"
									: "the program has not made a VkInstance yet";
}

#ifdef __cplusplus
}
#endif

#endif
