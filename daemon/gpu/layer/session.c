#include "gpu/layer/session.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/layer/channel.h"
#include "gpu/layer/devices.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/listening.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/shader_files.h"
#include "gpu/layer/wish.h"

#define FRAME_TOLD_NS UINT64_C(100000000) /* frame lines are that far apart */
#define IN_FLIGHT_MS                                                                               \
	1000 /* a capture begins that late at most, when submits of other threads do not return */
#define EXIT_LOCK_S 5 /* the exit handler waits so long for a call that is under way */

struct session_state session = {.lock = PTHREAD_MUTEX_INITIALIZER, .channel = {-1}};

void session_close_channel(void)
{
	if (session.channel.fd >= 0) {
		close(session.channel.fd);
	}
	session.channel.fd = -1;
}

void session_tell_frame(bool must)
{
	enum frame_rule rule = FRAME_SUBMIT;
	uint64_t frame = 0, now = session_now_ns();
	if (!must && session.has_told && now - session.told_ns < FRAME_TOLD_NS) {
		return;
	}
	if (!must && session.frames.state == FRAMES_WAITING && session.current != NULL &&
		session.current->is_left_out) {
		return; /* what it does is none of who waits */
	}
	if (session.current != NULL) {
		frame = frames_current(&session.frames, session.current, &rule);
	}
	if (!must && session.has_told && frame == session.told_frame) {
		return;
	}
	report_frame(&session.channel, frame, rule, must);
	session.has_told = true;
	session.told_ns = now;
	session.told_frame = frame;
}

static void write_shaders(void)
{
	if (!session.has_no_shaders) {
		shader_files_write(session.shaders, session.wish.template, &session.channel);
	}
}

static void forget_shaders(void)
{
	if (!session.has_no_shaders) {
		shaders_forget_used(session.shaders);
	}
}

bool session_end_capture(bool by_program, struct fault *fault)
{
	struct renderdoc_document document;
	bool is_made = renderdoc_end(&session.renderdoc, session.instance, &document, fault);
	session_tell_frame(true);
	if (is_made) {
		write_shaders();
		report_document(
			&session.channel, &document, session.frames.first, session.frames.reached, by_program);
	} else {
		report_fault(&session.channel, fault);
	}
	forget_shaders();
	session.is_programs = false;
	frames_ended(&session.frames);
	return is_made;
}

static void end_capture(void)
{
	struct fault fault = {0};
	session_end_capture(false, &fault);
}

/* Also when the lock cannot be had because the program ends within a call: then nothing can be saved. */
static void at_exit(void)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += EXIT_LOCK_S;
	if (!session.is_open || pthread_mutex_timedlock(&session.lock, &end) != 0) {
		return;
	}
	if (session.frames.state == FRAMES_CAPTURING) {
		session.has_no_shaders = !shaders_are_free(session.shaders, EXIT_LOCK_S * 1000);
		end_capture();
	}
	if (session.is_open) {
		if (session.current != NULL) {
			session_tell_frame(true);
		}
		report_bye(&session.channel, "exit");
	}
	session.is_open = false;
	pthread_mutex_unlock(&session.lock);
}

/*
 * Submits to other queues that came here before, and would be in the document if they reached RenderDoc after its start. No new ones come:
 * the lock is held. Those end without it.
 */
static void wait_for_submits(void)
{
	uint64_t end_ns = session_now_ns() + IN_FLIGHT_MS * UINT64_C(1000000);
	while (atomic_load(&session.in_flight) > 0 && session_now_ns() < end_ns) {
		sched_yield();
	}
}

static void explain_no_begin(struct fault *fault)
{
	if (session.api == SESSION_GL) {
		fault_set(fault, "start_failed",
			"RenderDoc (%s) did not begin to capture: it records no OpenGL contexts that are older "
			"than 3.2 or are made by glXCreateContext; its log is in $TMPDIR/RenderDoc",
			session.renderdoc.path);
	}
}

bool session_begin_capture(struct frame_counts *counts, void *instance, struct fault *fault)
{
	session.instance = instance;
	wait_for_submits();
	if (!renderdoc_begin(&session.renderdoc, instance, session.wish.template, fault)) {
		frames_ended(&session.frames);
		explain_no_begin(fault);
		report_fault(&session.channel, fault);
		return false;
	}
	/* Later handlers run earlier: this one before those of RenderDoc, which is there by now, and of the driver. */
	if (!session.has_exit_handler) {
		session.has_exit_handler = atexit(at_exit) == 0;
	}
	frames_begun(&session.frames, counts);
	const struct session_device *device = devices_find(counts);
	report_capturing(&session.channel, session.frames.first, device != NULL ? &device->told : NULL);
	return true;
}

static void tell_late(const struct frame_counts *counts)
{
	struct fault fault;
	enum frame_rule rule;
	uint64_t current = frames_current(&session.frames, counts, &rule);
	fault_set(&fault, "start_failed",
		"frame %llu has begun already: the program is in frame %llu (by %s); ask for a later one, "
		"or for the next",
		(unsigned long long)session.frames.wish.first, (unsigned long long)current,
		wish_rule_name(rule));
	report_fault(&session.channel, &fault);
}

static void take_step(enum frame_step step, struct frame_counts *counts, void *instance)
{
	struct fault fault = {0};
	switch (step) {
	case FRAME_BEGIN:
		session_begin_capture(counts, instance, &fault);
		break;
	case FRAME_END:
		end_capture();
		break;
	case FRAME_LATE:
		tell_late(counts);
		break;
	case FRAME_NOTHING:
		break;
	}
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

void session_before_submit(struct session_submit *submit)
{
	struct frames *frames = &session.frames;
	pthread_mutex_lock(&session.lock);
	const char *label = frames_label(frames);
	bool is_labelled = label != NULL && submit->has_label(submit->submit, label);
	session.current = submit->counts;
	if (!begins_with_work()) {
		take_step(frames_before_submit(frames, submit->counts, is_labelled), submit->counts,
			submit->instance);
	}
	if (submit->note_shaders != NULL && frames_owns(frames, submit->counts)) {
		submit->note_shaders(submit->submit);
	}
	session_tell_frame(false);
	submit->is_held = frames->state != FRAMES_IDLE;
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
	take_step(
		frames_after_submit(&session.frames, submit->counts), submit->counts, submit->instance);
	pthread_mutex_unlock(&session.lock);
}

void session_after_present(struct frame_counts *counts, void *instance)
{
	pthread_mutex_lock(&session.lock);
	session.current = counts;
	take_step(frames_after_present(&session.frames, counts), counts, instance);
	session_tell_frame(false);
	pthread_mutex_unlock(&session.lock);
}

void session_label(const struct session_submit *place)
{
	struct frames *frames = &session.frames;
	pthread_mutex_lock(&session.lock);
	const char *label = frames_label(frames);
	if (label != NULL && frames->wish.rule == FRAME_LABEL &&
		place->has_label(place->submit, label)) {
		session.current = place->counts;
		take_step(
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
		take_step(frames_begin_now(frames, counts), counts, instance);
	} else if (frames_owns(frames, counts) && frames->is_stopping) {
		take_step(FRAME_END, counts, instance);
	}
	session.wants_work = begins_with_work() || frames->is_stopping;
	pthread_mutex_unlock(&session.lock);
}

void session_swapchain_made(struct frame_counts *counts)
{
	pthread_mutex_lock(&session.lock);
	frames_swapchain(counts);
	pthread_mutex_unlock(&session.lock);
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
		end_capture();
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

/* Where RenderDoc is cannot be asked for; but what is below us is known, and what is loaded. */
static const char *find_order(const void *const *below, unsigned count)
{
	if (!session.renderdoc.is_loaded) {
		return "alone";
	}
	for (unsigned i = 0; i < count; i++) {
		if (renderdoc_holds(&session.renderdoc, below[i])) {
			return "above";
		}
	}
	return "below";
}

/* A child that goes on without exec is another process to profd: it says hello when it makes an instance of its own. */
static void forget_in_child(void)
{
	session_close_channel();
	memset(&session, 0, sizeof(session));
	session.channel.fd = -1;
	pthread_mutex_init(&session.lock, NULL);
}

static void prepare(void)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&session.heard, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_atfork(NULL, NULL, forget_in_child);
	atexit(at_exit);
}

void session_hello(enum session_api api, const void *const *below, unsigned count)
{
	const char *path = getenv("PROFD_GPU_SOCKET"), *token = getenv("PROFD_GPU_TOKEN");
	const char *device = getenv("PROFD_GPU_DEVICE");
	pthread_mutex_lock(&session.lock);
	if (!session.has_hello && path != NULL && token != NULL) {
		session.has_hello = true;
		session.device_wish = device != NULL && *device != '\0' ? strdup(device) : NULL;
		session.shaders = shaders_create();
		if (session.shaders != NULL && channel_connect(&session.channel, path)) {
			prepare();
			session.api = api;
			renderdoc_find(&session.renderdoc);
			session.order = find_order(below, count);
			session.is_open = true;
			report_hello(&session.channel, token, api == SESSION_GL ? "gl" : "vulkan",
				session.order, &session.renderdoc);
			session.is_open = channel_listen(&session.channel, &listening);
		}
	}
	pthread_mutex_unlock(&session.lock);
}

void session_wait_for_greeting(void)
{
	uint64_t end_ns = session_now_ns() + GPU_WIRE_GREETING_MS * UINT64_C(1000000);
	struct timespec end = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
	pthread_mutex_lock(&session.lock);
	while (session_is_open() && !session.is_greeted &&
		   pthread_cond_timedwait(&session.heard, &session.lock, &end) != ETIMEDOUT) {
	}
	session.is_greeted = true;
	pthread_mutex_unlock(&session.lock);
}
