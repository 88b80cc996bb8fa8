#include "gpu/layer/recording.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include "gpu/layer/devices.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/shader_files.h"
#include "gpu/layer/wish.h"

#define IN_FLIGHT_MS                                                                               \
	1000 /* a capture begins that late at most, when submits of other threads do not return */

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

bool recording_end(bool by_program, struct fault *fault)
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

void recording_save(void)
{
	struct fault fault = {0};
	recording_end(false, &fault);
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

bool recording_begin(struct frame_counts *counts, void *instance, struct fault *fault)
{
	session.instance = instance;
	wait_for_submits();
	if (!renderdoc_begin(&session.renderdoc, instance, session.wish.template, fault)) {
		frames_ended(&session.frames);
		explain_no_begin(fault);
		report_fault(&session.channel, fault);
		return false;
	}
	presence_watch_exit();
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

void recording_take(enum frame_step step, struct frame_counts *counts, void *instance)
{
	struct fault fault = {0};
	switch (step) {
	case FRAME_BEGIN:
		recording_begin(counts, instance, &fault);
		break;
	case FRAME_END:
		recording_save();
		break;
	case FRAME_LATE:
		tell_late(counts);
		break;
	case FRAME_NOTHING:
		break;
	}
}
