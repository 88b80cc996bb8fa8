#include "gpu/layer/session.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "gpu/layer/channel.h"
#include "gpu/layer/devices.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/recording.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"

#define FRAME_TOLD_NS   UINT64_C(100000000) /* frame lines are that far apart, */
#define FRAMES_ALL_TOLD 16 /* but for these: a program may end by _exit after a few */

struct session_state session = {.lock = PTHREAD_MUTEX_INITIALIZER, .channel = {-1}};

void session_tell_frame(bool must)
{
	enum frame_rule rule = FRAME_SUBMIT;
	uint64_t frame = 0, now = clock_monotonic_ns();
	if (!must && session.frames.state == FRAMES_WAITING && session.current != NULL &&
		session.current->is_left_out) {
		return; /* what it does is none of who waits */
	}
	if (session.current != NULL) {
		frame = frames_current(&session.frames, session.current, &rule);
	}
	/* Those that are counted in another way now are none of those that were told. */
	bool is_known = session.has_told && rule == session.told_rule;
	if (!must && is_known &&
		(frame == session.told_frame ||
			(frame >= FRAMES_ALL_TOLD && now - session.told_ns < FRAME_TOLD_NS))) {
		return;
	}
	report_frame(&session.channel, frame, rule, must);
	session.has_told = true;
	session.told_ns = now;
	session.told_rule = rule;
	session.told_frame = frame;
}

bool session_is_open(void)
{
	return atomic_load_explicit(&session.is_open, memory_order_relaxed);
}

struct shaders *session_shaders(void)
{
	pthread_mutex_lock(&session.lock);
	struct shaders *shaders = session.shaders;
	pthread_mutex_unlock(&session.lock);
	return shaders;
}

/* Contexts that programs only look at, and give no work, are none to begin with. */
static bool begins_with_work(void)
{
	return session.api == SESSION_GL && frames_can_begin_anywhere(&session.frames);
}

/* A frame is about to be submitted: it may begin, or end, what is recorded. */
static void before_frame(const struct session_submit *submit)
{
	struct frames *frames = &session.frames;
	const char *label = frames_label(frames);
	bool is_labelled = label != NULL && submit->has_label(submit->submit, label);
	session.current = submit->counts;
	recording_end_due(submit->counts, true);
	if (!begins_with_work()) {
		recording_take(frames_before_submit(frames, submit->counts, is_labelled), submit->counts,
			submit->instance);
	}
	if (submit->note_shaders != NULL && frames_owns(frames, submit->counts)) {
		submit->note_shaders(submit->submit);
	}
	session_tell_frame(false);
}

void session_before_submit(struct session_submit *submit)
{
	pthread_mutex_lock(&session.lock);
	if (submit->is_frame) {
		before_frame(submit);
	}
	submit->is_held = session.frames.state != FRAMES_IDLE;
	if (!submit->is_held) {
		atomic_fetch_add(&session.in_flight, 1);
		pthread_mutex_unlock(&session.lock);
	}
}

void session_after_submit(struct session_submit *submit)
{
	if (!submit->is_held) {
		atomic_fetch_sub(&session.in_flight, 1);
		return;
	}
	if (submit->is_frame) {
		recording_take(
			frames_after_submit(&session.frames, submit->counts), submit->counts, submit->instance);
	}
	recording_end_due(submit->counts, false);
	pthread_mutex_unlock(&session.lock);
}

void session_released(struct frame_counts *counts)
{
	pthread_mutex_lock(&session.lock);
	recording_end_due(counts, false);
	pthread_mutex_unlock(&session.lock);
}

void session_before_present(struct frame_counts *counts, void *instance)
{
	pthread_mutex_lock(&session.lock);
	session.current = counts;
	recording_take(frames_before_present(&session.frames, counts), counts, instance);
	pthread_mutex_unlock(&session.lock);
}

void session_after_present(struct frame_counts *counts, void *instance)
{
	pthread_mutex_lock(&session.lock);
	session.current = counts;
	recording_take(frames_after_present(&session.frames, counts), counts, instance);
	session_tell_frame(false);
	pthread_mutex_unlock(&session.lock);
}

void session_label(const struct session_submit *place)
{
	struct frames *frames = &session.frames;
	pthread_mutex_lock(&session.lock);
	const char *label = frames_label(frames);
	if (label != NULL && frames_count_labels(frames) && place->has_label(place->submit, label)) {
		session.current = place->counts;
		recording_take(
			frames_before_submit(frames, place->counts, true), place->counts, place->instance);
		session_tell_frame(false);
	}
	pthread_mutex_unlock(&session.lock);
}

bool session_wants_work(void)
{
	return atomic_load_explicit(&session.wants_work, memory_order_relaxed);
}

void session_working(struct frame_counts *counts, void *instance)
{
	struct frames *frames = &session.frames;
	pthread_mutex_lock(&session.lock);
	if (begins_with_work()) {
		session.current = counts;
		recording_take(frames_begin_now(frames, counts), counts, instance);
	} else if (frames_owns(frames, counts) && frames->is_stopping) {
		recording_take(FRAME_END, counts, instance);
	}
	frames_work(frames, counts);
	session.wants_work = begins_with_work() || frames->is_stopping ||
						 (frames->state == FRAMES_CAPTURING && !frames->has_work);
	pthread_mutex_unlock(&session.lock);
}

void session_swapchain_made(struct frame_counts *counts)
{
	pthread_mutex_lock(&session.lock);
	frames_swapchain(counts);
	pthread_mutex_unlock(&session.lock);
}

bool session_records(const struct frame_counts *counts)
{
	pthread_mutex_lock(&session.lock);
	bool records = frames_owns(&session.frames, counts);
	pthread_mutex_unlock(&session.lock);
	return records;
}

static void save(const struct frame_counts *counts, enum recording_ender by)
{
	pthread_mutex_lock(&session.lock);
	if (frames_owns(&session.frames, counts)) {
		recording_save(by);
	}
	pthread_mutex_unlock(&session.lock);
}

void session_picture_goes(const struct frame_counts *counts)
{
	save(counts, RECORDING_ENDED_BY_WINDOW);
}

void session_instance_goes(const struct frame_counts *counts)
{
	save(counts, RECORDING_ENDED);
}

void session_device_made(struct session_device *device, const struct report_device *told)
{
	pthread_mutex_lock(&session.lock);
	device->next = session.devices;
	device->told = *told;
	session.devices = device;
	devices_mark();
	report_device(&session.channel, told);
	pthread_mutex_unlock(&session.lock);
}

/* False: it was another process's, of which this one is a child. */
static bool take_out(const struct session_device *device)
{
	struct session_device **link = &session.devices;
	while (*link != NULL && *link != device) {
		link = &(*link)->next;
	}
	if (*link == NULL) {
		return false;
	}
	*link = device->next;
	return true;
}

void session_device_gone(struct session_device *device)
{
	pthread_mutex_lock(&session.lock);
	if (frames_owns(&session.frames, device->counts)) {
		recording_save(RECORDING_ENDED);
	}
	if (take_out(device) && session.devices == NULL) {
		session_tell_frame(true);
		report_bye(&session.channel, "destroyed");
	}
	if (session.current == device->counts) {
		session.current = NULL;
	}
	pthread_mutex_unlock(&session.lock);
}

bool session_check(struct fault *fault)
{
	if (strcmp(session.order, "below") == 0) {
		return fault_set(fault, "layer_order",
			"RenderDoc's layer is above profd's, where a capture would never begin: take "
			"VK_LAYER_RENDERDOC_Capture and "
			"VK_LAYER_PROFD_gpu out of VK_INSTANCE_LAYERS, and unset "
			"ENABLE_VULKAN_RENDERDOC_CAPTURE");
	}
	if (session.no_device.code != NULL) {
		*fault = session.no_device;
		return false;
	}
	return renderdoc_check(&session.renderdoc, fault);
}
