#include "gpu/layer/recording.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/layer/devices.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/shader_files.h"
#include "gpu/layer/timelines.h"
#include "gpu/layer/wish.h"

#define IN_FLIGHT_MS                                                                               \
	1000 /* a capture begins that late at most, when submits of other threads do not return */
#define OTHERS_MS                                                                                  \
	1000 /* so long other threads may take to signal what keeps the device from its end */
#define POLL_NS 1000000

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

/* False: fault, RenderDoc would wait for ever. */
static bool can_become_idle(const struct frame_counts *counts, struct fault *fault)
{
	struct timelines_hold hold;
	const struct session_device *device = devices_find(counts);
	if (device == NULL || device->timelines == NULL || !timelines_hold(device->timelines, &hold)) {
		return true;
	}
	return fault_set(fault, "device_waits",
		"submitted work waits for the value %llu of a timeline semaphore that comes to %llu until "
		"the program signals it, or submits what does (%zu submit%s held back)",
		(unsigned long long)hold.value, (unsigned long long)hold.reached, hold.batches,
		hold.batches == 1 ? " is" : "s are");
}

/* Other threads may be about to signal: they need no lock of ours for that. */
static bool wait_until_idle(const struct frame_counts *counts, struct fault *fault)
{
	const struct timespec pause = {0, POLL_NS};
	uint64_t end_ns = clock_monotonic_ns() + OTHERS_MS * UINT64_C(1000000);
	bool is_free = can_become_idle(counts, fault);
	while (!is_free && clock_monotonic_ns() < end_ns) {
		nanosleep(&pause, NULL);
		is_free = can_become_idle(counts, fault);
	}
	return is_free;
}

/* Once for each beginning and end that is put off. */
static void tell_waits(bool is_end, const struct fault *fault)
{
	if (session.waits_ns == 0) {
		session.waits_ns = clock_monotonic_ns();
		report_waits(&session.channel, is_end, session.waits_ns, fault->text);
	}
}

bool recording_can_end(bool waits, struct fault *fault)
{
	const struct frame_counts *counts = session.frames.owner;
	return waits ? wait_until_idle(counts, fault) : can_become_idle(counts, fault);
}

static void forget(void)
{
	forget_shaders();
	session.is_programs = session.is_end_due = false;
	session.waits_ns = 0;
	frames_ended(&session.frames);
	session_tell_frame(false);
}

/* A document with nothing in it would look like one of the frame that it is called after. RenderDoc 1.24 crashes in its DiscardFrameCapture. */
static bool check_work(const struct renderdoc_document *document, struct fault *fault)
{
	if (session.frames.has_work) {
		return true;
	}
	unlink(document->path);
	return fault_set(fault, "nothing_recorded", "frame %llu (by %s) never began",
		(unsigned long long)session.frames.first, wish_rule_name(session.frames.rule));
}

static bool make_document(struct renderdoc_document *document, struct fault *fault)
{
	session.renderdoc_ends = true;
	session.renderdoc_ns = clock_monotonic_ns();
	bool is_made = renderdoc_end(&session.renderdoc, session.instance, document, fault);
	session.renderdoc_ns = 0;
	return is_made && check_work(document, fault);
}

bool recording_end(enum recording_ender by, struct fault *fault)
{
	struct renderdoc_document document;
	const struct report_frames recorded = {
		session.frames.first, session.frames.reached, frames_end_open(&session.frames)};
	bool is_made = make_document(&document, fault);
	session_tell_frame(true);
	if (is_made) {
		write_shaders();
		report_document(&session.channel, &document, &recorded, by);
	} else {
		report_fault(&session.channel, fault);
	}
	forget();
	return is_made;
}

bool recording_end_now(void)
{
	struct fault fault = {0};
	if (!recording_can_end(false, &fault)) {
		session.is_end_due = true;
		tell_waits(true, &fault);
		return false;
	}
	recording_end(RECORDING_ENDED, &fault);
	return true;
}

void recording_end_due(const struct frame_counts *counts, bool is_next)
{
	struct fault fault = {0};
	if (!session.is_end_due || !frames_owns(&session.frames, counts)) {
		return;
	}
	/* Frames that were not asked for are worth a moment, but not each of them. */
	bool waits = is_next && session.waits_ns + OTHERS_MS * UINT64_C(1000000) > clock_monotonic_ns();
	if (recording_can_end(waits, &fault)) {
		recording_end(RECORDING_ENDED, &fault);
	}
}

void recording_save(enum recording_ender by)
{
	struct fault fault = {0};
	if (recording_can_end(true, &fault)) {
		recording_end(by, &fault);
	} else {
		report_fault(&session.channel, &fault);
		forget();
	}
}

/*
 * Submits to other queues that came here before, and would be in the document if they reached RenderDoc after its start. No new ones come:
 * the lock is held. Those end without it.
 */
static void wait_for_submits(void)
{
	uint64_t end_ns = clock_monotonic_ns() + IN_FLIGHT_MS * UINT64_C(1000000);
	while (atomic_load(&session.in_flight) > 0 && clock_monotonic_ns() < end_ns) {
		sched_yield();
	}
}

static void explain_no_begin(struct fault *fault)
{
	if (session.api == SESSION_GL && strcmp(fault->code, "start_failed") == 0) {
		fault_set(fault, "start_failed",
			"%s records no OpenGL contexts that are older than 3.2 or are made by glXCreateContext",
			session.renderdoc.path);
	}
}

/* False: it is put off, or given up; profd was told. */
static bool can_begin(const struct frame_counts *counts, struct fault *fault)
{
	if (can_become_idle(counts, fault)) {
		return true;
	}
	if (frames_put_off(&session.frames)) {
		tell_waits(false, fault);
		return false;
	}
	if (wait_until_idle(counts, fault)) {
		return true;
	}
	frames_ended(&session.frames);
	report_fault(&session.channel, fault);
	return false;
}

static bool begin_document(void *instance, struct fault *fault)
{
	session.instance = instance;
	session.renderdoc_ends = false;
	session.renderdoc_ns = clock_monotonic_ns();
	bool has_begun = renderdoc_begin(&session.renderdoc, instance, session.wish.template, fault);
	session.renderdoc_ns = 0;
	return has_begun;
}

bool recording_begin(struct frame_counts *counts, void *instance, struct fault *fault)
{
	wait_for_submits();
	if (!can_begin(counts, fault)) {
		return false;
	}
	if (!begin_document(instance, fault)) {
		frames_ended(&session.frames);
		explain_no_begin(fault);
		report_fault(&session.channel, fault);
		return false;
	}
	session.waits_ns = 0;
	presence_watch_exit();
	session.wants_work = session.api == SESSION_GL; /* until there is some */
	frames_begun(&session.frames, counts);
	session.current = counts;
	session_tell_frame(false);
	const struct session_device *device = devices_find(counts);
	report_capturing(&session.channel, session.frames.first, device != NULL ? &device->told : NULL);
	return true;
}

static void tell_late(const struct frame_counts *counts)
{
	struct fault fault;
	enum frame_rule rule = session.frames.rule;
	uint64_t current = frames_begun_last(counts, rule);
	fault_set(&fault, "frame_passed",
		"frame %llu has begun already: the program is in frame %llu (by %s)",
		(unsigned long long)session.frames.wish.first, (unsigned long long)current,
		wish_rule_name(rule));
	report_fault(&session.channel, &fault);
}

void recording_take(enum frame_step step, struct frame_counts *counts, void *instance)
{
	struct fault fault = {0};
	switch (step) {
	case FRAME_BEGIN:
		recording_begin(counts, instance, &fault);
		break;
	case FRAME_END:
		if (!recording_end_now()) {
			frames_extend(&session.frames, counts);
		}
		break;
	case FRAME_LATE:
		tell_late(counts);
		break;
	case FRAME_NOTHING:
		break;
	}
}
