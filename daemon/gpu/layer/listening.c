#include "gpu/layer/listening.h"

#include <pthread.h>
#include <string.h>

#include "gpu/layer/devices.h"
#include "gpu/layer/fault.h"
#include "gpu/layer/presence.h"
#include "gpu/layer/program.h"
#include "gpu/layer/recording.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/wish.h"

#define STOP_MS 200 /* a stop waits so long for the program's next call */

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
	pthread_mutex_lock(&session.lock);
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
	pthread_mutex_lock(&session.lock);
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
		devices_mark();
		session.wants_work = session.api == SESSION_GL;
	} else {
		report_fault(&session.channel, &fault);
	}
	pthread_mutex_unlock(&session.lock);
}

static void stop(void)
{
	struct fault fault;
	pthread_mutex_lock(&session.lock);
	bool was_waiting = session.frames.state == FRAMES_WAITING;
	program_cancel();
	session.wants_work = session.api == SESSION_GL;
	if (frames_stop(&session.frames)) {
		session.stop_ns = session_now_ns() + STOP_MS * UINT64_C(1000000);
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
		pthread_mutex_lock(&session.lock);
		session_tell_frame(true);
		pthread_mutex_unlock(&session.lock);
	} else if (strcmp(message->word, "refused") == 0) {
		pthread_mutex_lock(&session.lock);
		program_refused(message);
		pthread_mutex_unlock(&session.lock);
	}
	pthread_mutex_lock(&session.lock);
	session.is_greeted = true;
	pthread_cond_broadcast(&session.heard);
	pthread_mutex_unlock(&session.lock);
}

/* What is captured is kept, although nobody asks for it any more: the next profd, or a person, may. */
static void lost(void)
{
	pthread_mutex_lock(&session.lock);
	session.is_lost = session.is_greeted = true;
	session.stop_ns = session_now_ns() + STOP_MS * UINT64_C(1000000);
	frames_stop(&session.frames);
	pthread_cond_broadcast(&session.heard);
	pthread_mutex_unlock(&session.lock);
}

/* A program that submits nothing any more has no place where a stop could take effect. */
static int tick(void)
{
	struct fault fault = {0};
	int wait_ms = -1;
	pthread_mutex_lock(&session.lock);
	if (session.frames.state == FRAMES_CAPTURING && session.frames.is_stopping) {
		uint64_t now = session_now_ns();
		if (now >= session.stop_ns) {
			recording_end(false, &fault);
		} else {
			wait_ms = (int)((session.stop_ns - now) / 1000000) + 1;
		}
	}
	if (session.is_lost && session.frames.state != FRAMES_CAPTURING) {
		session.is_open = false;
		presence_close();
		wait_ms = 0;
	}
	pthread_mutex_unlock(&session.lock);
	return wait_ms;
}

static bool is_done(void)
{
	return !session_is_open();
}

const struct channel_listener listening = {heard, lost, tick, is_done};
