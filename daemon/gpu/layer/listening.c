#include "gpu/layer/listening.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "gpu/layer/devices.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/program.h"
#include "gpu/layer/recording.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/wish.h"

#define STOP_MS  200  /* a stop waits so long for the program's next call */
#define WATCH_MS 500  /* so often is looked after what was started, */
#define STUCK_MS 3000 /* and RenderDoc is told of when it takes longer */

/* RenderDoc's beginning or end that was told of last, by its moment. This thread's. */
static uint64_t told_stuck_ns;

static void tell_stuck(void)
{
	uint64_t since_ns = session.renderdoc_ns;
	bool is_end = session.renderdoc_ends;
	if (since_ns != 0 && since_ns != told_stuck_ns &&
		clock_monotonic_ns() - since_ns > STUCK_MS * UINT64_C(1000000)) {
		told_stuck_ns = since_ns;
		report_waits(&session.channel, is_end, since_ns,
			"RenderDoc waits for the device, whose work perhaps waits for what the program does "
			"only later (vkSetEvent), or it is slow");
	}
}

/* Whoever has the lock may be in RenderDoc, for ever. The connection is closed by this thread alone, so that it can be used without. */
static void enter(void)
{
	while (true) {
		struct timespec end;
		clock_gettime(CLOCK_REALTIME, &end);
		uint64_t end_ns = (uint64_t)end.tv_nsec + WATCH_MS * UINT64_C(1000000);
		end.tv_sec += (time_t)(end_ns / 1000000000);
		end.tv_nsec = (long)(end_ns % 1000000000);
		if (pthread_mutex_timedlock(&session.lock, &end) == 0) {
			return;
		}
		tell_stuck();
	}
}

static bool check_rule(const struct wish *wish, struct fault *fault)
{
	if (session.api == SESSION_GL && wish->frames.rule == FRAME_SUBMIT) {
		return fault_set(fault, "no_such_boundary",
			"a program that uses GL has no submits: its frames end with eglSwapBuffers or "
			"glXSwapBuffers (present), or begin with glPushDebugGroup (label); one that has "
			"neither is recorded from a start to a stop (manual)");
	}
	return true;
}

static bool is_possible(struct fault *fault)
{
	enter();
	bool ok = session_check(fault);
	pthread_mutex_unlock(&session.lock);
	return ok;
}

static bool check_start(
	const struct gpu_wire_message *message, struct wish *wish, struct fault *fault)
{
	return is_possible(fault) && wish_read(message, wish, fault) && check_rule(wish, fault) &&
		   renderdoc_can_write(wish->template, fault);
}

static void start(const struct gpu_wire_message *message)
{
	struct wish wish;
	struct fault fault = {0};
	bool is_good = check_start(message, &wish, &fault);
	enter();
	if (gpu_wire_get(message, "asked") != NULL) {
		program_granted(message, is_good ? &wish : NULL, &fault);
		pthread_mutex_unlock(&session.lock);
		return;
	}
	if (is_good) {
		is_good = frames_start(&session.frames, &wish.frames) ||
				  fault_set(&fault, "busy",
					  "a capture %s in this process already: one at a time is possible",
					  session.frames.state == FRAMES_WAITING ? "waits" : "is under way");
	}
	if (is_good) {
		session.wish = wish;
		session.waits_ns = 0;
		devices_mark();
		session.wants_work = session.api == SESSION_GL;
		session_tell_frame(false);
	} else {
		report_fault(&session.channel, &fault);
	}
	pthread_mutex_unlock(&session.lock);
}

static void stop(void)
{
	struct fault fault;
	enter();
	bool was_waiting = session.frames.state == FRAMES_WAITING;
	program_cancel();
	session.wants_work = session.api == SESSION_GL;
	session_tell_frame(true); /* where it was, if it says no more */
	if (frames_stop(&session.frames)) {
		session.stop_ns = clock_monotonic_ns() + STOP_MS * UINT64_C(1000000);
	} else {
		fault_set(&fault, "not_capturing", "%s",
			was_waiting ? "its first frame had not begun" : "no capture was started");
		report_fault(&session.channel, &fault);
	}
	pthread_mutex_unlock(&session.lock);
}

static void heard(const struct gpu_wire_message *message)
{
	if (strcmp(message->word, "start") == 0) {
		start(message);
	} else if (strcmp(message->word, "stop") == 0) {
		stop();
	} else if (strcmp(message->word, "status") == 0) {
		enter();
		session_tell_frame(true);
		pthread_mutex_unlock(&session.lock);
	} else if (strcmp(message->word, "refused") == 0) {
		enter();
		program_refused(message);
		pthread_mutex_unlock(&session.lock);
	}
	enter();
	session.is_greeted = true;
	pthread_cond_broadcast(&session.heard);
	pthread_mutex_unlock(&session.lock);
}

/* What is captured is kept, although nobody asks for it any more: the next profd, or a person, may. */
static void lost(void)
{
	enter();
	session.is_lost = session.is_greeted = true;
	session.stop_ns = clock_monotonic_ns() + STOP_MS * UINT64_C(1000000);
	frames_stop(&session.frames);
	pthread_cond_broadcast(&session.heard);
	pthread_mutex_unlock(&session.lock);
}

/* profd has lost what it asked for, and asks again for what had not begun. */
static bool renew(void)
{
	struct fault unused;
	enter();
	/* The sooner the less may get in its place. */
	renderdoc_log_mend(&session.renderdoc.log, &unused);
	bool is_open = presence_renew();
	if (is_open) {
		session.stop_ns = clock_monotonic_ns() + STOP_MS * UINT64_C(1000000);
		frames_stop(&session.frames);
	}
	pthread_mutex_unlock(&session.lock);
	return is_open;
}

static void *end_recording(void *unused)
{
	pthread_mutex_lock(&session.lock);
	if (session.frames.state == FRAMES_CAPTURING && session.frames.is_stopping) {
		recording_end_now();
	}
	session.is_ending = false;
	pthread_mutex_unlock(&session.lock);
	return unused;
}

/* Not on this thread, which has to be there when RenderDoc does not come back. */
static void end_elsewhere(void)
{
	pthread_t thread;
	session.stop_ns = clock_monotonic_ns() + STOP_MS * UINT64_C(1000000);
	session.is_ending = pthread_create(&thread, NULL, end_recording, NULL) == 0;
	if (session.is_ending) {
		pthread_detach(thread);
	} else {
		recording_end_now();
	}
}

/* A program that submits nothing any more has no place where a stop could take effect. */
static int tick(void)
{
	int wait_ms = -1;
	enter();
	session_tell_frame(false); /* that was too soon to be told when it began */
	if (session.frames.state != FRAMES_IDLE || session.asking.state != ASKING_NOT) {
		wait_ms = WATCH_MS;
	}
	if (session.frames.state == FRAMES_CAPTURING && session.frames.is_stopping &&
		!session.is_ending) {
		uint64_t now = clock_monotonic_ns();
		if (now >= session.stop_ns) {
			end_elsewhere();
		}
		wait_ms = now < session.stop_ns ? (int)((session.stop_ns - now) / 1000000) + 1 : 1;
	}
	if (session.is_lost && session.frames.state != FRAMES_CAPTURING) {
		session.is_open = false;
		channel_close(&session.channel);
		wait_ms = 0;
	}
	pthread_mutex_unlock(&session.lock);
	return wait_ms;
}

static bool is_done(void)
{
	return !session_is_open();
}

const struct channel_listener listening = {heard, lost, renew, tick, is_done};
