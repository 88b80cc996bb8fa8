#ifndef GPU_LAYER_SESSION_H
#define GPU_LAYER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/layer/frames.h"
#include "gpu/layer/report.h"
#include "gpu/layer/shaders.h"
#include "gpu/layer/timelines.h"

/*
 * What this process has with profd: the connection, the wish that waits, the capture under way. There is one for a process, in a variable
 * of session.c, because the loader, the exit handler and fork give no context. Any thread; one lock is inside. It is held while RenderDoc
 * begins and ends (which calls nothing of ours: RenderDoc is below), and while a submit is passed on as long as a capture waits or is
 * under way, so that no other thread's submit gets in between that and a frame's beginning or end.
 */

/* What the program works with. A GL program has no submits: its frames are presented, and its commands are RenderDoc's on any thread. */
enum session_api {
	SESSION_VULKAN,
	SESSION_GL, /* OpenGL and OpenGL ES, by EGL or GLX */
};

/* One of the program's devices, as long as it is there. */
struct session_device {
	struct frame_counts *counts;
	void *instance; /* RenderDoc's name of it: its instance's dispatch table, or the context */
	struct timelines *timelines; /* borrowed; NULL: its work waits for nothing of the kind */
	struct session_device *next; /* the session's, as all below */
	struct report_device told;   /* as profd knows it */
};

/* Keeps device until it is gone. */
void session_device_made(struct session_device *device, const struct report_device *told);
/* Before the device is destroyed: what is captured of it is saved. */
void session_device_gone(struct session_device *device);

/* False: nobody listens; counts need not be kept. */
bool session_is_open(void);

/* Those of the process, for as long as it lives. NULL: nobody ever listened. */
struct shaders *session_shaders(void);

/* One call of vkQueueSubmit or its kin. */
struct session_submit {
	/* It has command buffers. Others are told too where what they signal, or wait for, has to be known before anything begins or ends. */
	bool is_frame;
	struct frame_counts *counts;
	void *instance; /* as a device's */
	/* One of its labels begins with the prefix. */
	bool (*has_label)(const void *submit, const char *prefix);
	/* It is in a captured frame: what it uses is used. NULL: it tells of no shaders. */
	void (*note_shaders)(const void *submit);
	const void *submit;
	bool is_held; /* the session's, between the two calls */
};

void session_before_submit(struct session_submit *submit);
void session_after_submit(struct session_submit *submit);
/* A call of the host has freed the last of this device's work that was held back (timelines.h). */
void session_released(struct frame_counts *counts);
void session_before_present(struct frame_counts *counts, void *instance);
void session_after_present(struct frame_counts *counts, void *instance);
void session_swapchain_made(struct frame_counts *counts);
/* It is this device that is recorded. */
bool session_records(const struct frame_counts *counts);
/* What was presented last is about to be destroyed: what is recorded of the device is saved (swapchains.h says why). */
void session_picture_goes(const struct frame_counts *counts);
/* The instance is about to be destroyed, although the device is there: the same. */
void session_instance_goes(const struct frame_counts *counts);
/* A place in a GL program where a label begins: a frame begins here when it is one of those that are counted. */
void session_label(const struct session_submit *place);

/* In a GL program, what was asked for without frames begins, and what is stopped ends, before the next call that gives the GPU work. */
bool session_wants_work(void);
void session_working(struct frame_counts *counts, void *instance);

#endif
