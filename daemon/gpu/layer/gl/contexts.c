#include "gpu/layer/gl/contexts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/layer/gl/below.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/session.h"

#define GL_RENDERER 0x1F01
#define GL_VERSION  0x1F02

/* Never freed, because another thread may still draw with what is destroyed; taken again by a later one. */
struct context {
	struct context *next;
	void *handle; /* RenderDoc's name of it too; NULL: it is gone */
	struct session_device told;
	struct frame_counts counts;
	const void *display;  /* and */
	unsigned long window; /* where it is shown; NULL, 0: not known */
	/* It was released since the last frame, and in the frame before that. */
	bool is_released, is_handed_on;
};

static struct context *contexts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Within the lock. */
static struct context *find_in_list(const void *handle)
{
	struct context *context = contexts;
	while (context != NULL && context->handle != handle) {
		context = context->next;
	}
	return context;
}

static struct context *find(const void *handle)
{
	pthread_mutex_lock(&lock);
	struct context *context = handle != NULL ? find_in_list(handle) : NULL;
	pthread_mutex_unlock(&lock);
	return context;
}

/* NULL: another thread has added it, or memory is out. */
static struct context *add(const void *handle)
{
	struct context *context = NULL;
	pthread_mutex_lock(&lock);
	if (find_in_list(handle) == NULL) {
		context = find_in_list(NULL);
		if (context == NULL && (context = calloc(1, sizeof(*context))) != NULL) {
			context->next = contexts;
			contexts = context;
		}
	}
	if (context != NULL) {
		context->handle = (void *)handle;
		context->counts = (struct frame_counts){0};
		context->display = NULL;
		context->window = 0;
		context->is_released = context->is_handed_on = false;
	}
	pthread_mutex_unlock(&lock);
	return context;
}

void contexts_prepare(const void *handle)
{
	const void *next = NULL;
	if (handle != NULL && find(handle) == NULL) {
		memcpy(&next, &below()->glGetString, sizeof(next));
		presence_hello(SESSION_GL, &next, 1);
		presence_wait_for_greeting();
	}
}

/* GL itself does not say; these are Mesa's and SwiftShader's names of drivers that compute on the processor. */
static const char *type_of(const char *name)
{
	static const char *const software[] = {"llvmpipe", "softpipe", "swrast", "SwiftShader"};
	for (size_t i = 0; i < sizeof(software) / sizeof(software[0]); i++) {
		if (strstr(name, software[i]) != NULL) {
			return "cpu";
		}
	}
	return "other";
}

static void copy_string(char *out, size_t size, unsigned name)
{
	const unsigned char *text = below()->glGetString != NULL ? below()->glGetString(name) : NULL;
	snprintf(out, size, "%s", text != NULL ? (const char *)text : "");
}

static void tell_device(struct context *context)
{
	struct report_device device = {.index = 0};
	copy_string(device.name, sizeof(device.name), GL_RENDERER);
	copy_string(device.driver, sizeof(device.driver), GL_VERSION);
	memset(device.uuid, '0', sizeof(device.uuid) - 1);
	device.type = type_of(device.name);
	context->told =
		(struct session_device){.counts = &context->counts, .instance = context->handle};
	session_device_made(&context->told, &device);
}

static bool has_no_label(const void *unused, const char *prefix)
{
	(void)unused, (void)prefix;
	return false;
}

void contexts_current(const void *handle)
{
	struct context *context = handle != NULL && session_is_open() ? add(handle) : NULL;
	if (context == NULL) {
		return;
	}
	struct session_submit first = {.is_frame = true,
		.counts = &context->counts,
		.instance = context->handle,
		.has_label = has_no_label};
	tell_device(context);
	session_swapchain_made(&context->counts);
	session_before_submit(&first);
	session_after_submit(&first);
}

void contexts_presented(const void *handle)
{
	struct context *context = session_is_open() ? find(handle) : NULL;
	if (context != NULL) {
		context->is_handed_on = context->is_released;
		context->is_released = false;
		session_after_present(&context->counts, context->handle);
	}
}

void contexts_draw_into(const void *handle, const void *display, unsigned long window)
{
	struct context *context = session_is_open() ? find(handle) : NULL;
	if (context != NULL) {
		context->display = display;
		context->window = window;
	}
}

void contexts_released(const void *handle)
{
	struct context *context = session_is_open() ? find(handle) : NULL;
	if (context != NULL) {
		if (!context->is_handed_on) {
			session_picture_goes(&context->counts);
		}
		context->is_released = true;
	}
}

/* window 0: all of the display. */
static void end_shown(const void *display, unsigned long window)
{
	struct context *context = NULL;
	pthread_mutex_lock(&lock);
	for (struct context *each = contexts; each != NULL && context == NULL; each = each->next) {
		bool is_shown = each->handle != NULL && each->display == display &&
						(window == 0 || each->window == window);
		context = is_shown && session_records(&each->counts) ? each : NULL;
	}
	pthread_mutex_unlock(&lock);
	if (context != NULL) {
		session_picture_goes(&context->counts);
	}
}

void contexts_window_goes(const void *display, unsigned long window)
{
	if (window != 0) {
		end_shown(display, window);
	}
}

void contexts_display_goes(const void *display)
{
	end_shown(display, 0);
}

void contexts_working(const void *handle)
{
	struct context *context = find(handle);
	if (context != NULL) {
		session_working(&context->counts, context->handle);
	}
}

static bool begins_with(const void *label, const char *prefix)
{
	return strncmp(label, prefix, strlen(prefix)) == 0;
}

void contexts_labelled(const void *handle, const char *label)
{
	struct context *context = session_is_open() ? find(handle) : NULL;
	if (context != NULL) {
		struct session_submit place = {.is_frame = true,
			.counts = &context->counts,
			.instance = context->handle,
			.has_label = begins_with,
			.submit = label};
		session_label(&place);
	}
}

void contexts_gone(const void *handle)
{
	struct context *context = find(handle);
	if (context != NULL) {
		session_device_gone(&context->told);
		pthread_mutex_lock(&lock);
		context->handle = NULL;
		pthread_mutex_unlock(&lock);
	}
}
