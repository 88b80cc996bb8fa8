#include "gpu/layer/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu/layer/recording.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"

/* What is none of these is PROGRAM_FAILED: it could not begin, or be written. */
static const struct {
	const char *code;
	enum program_status status;
} statuses[] = {
	{"not_armed", PROGRAM_NOT_ARMED},
	{"no_device", PROGRAM_NO_DEVICE},
	{"busy", PROGRAM_BUSY},
	{"not_capturing", PROGRAM_NOT_CAPTURING},
	{"refused", PROGRAM_REFUSED},
	{"no_answer", PROGRAM_NO_ANSWER},
};

static __thread char last_error[GPU_WIRE_TEXT_BYTES];

/* A thread that is cancelled while it waits would keep the lock for ever. The state is leave's. */
static int enter(void)
{
	int before = PTHREAD_CANCEL_ENABLE;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&session.lock);
	return before;
}

static void leave(int state)
{
	pthread_mutex_unlock(&session.lock);
	pthread_setcancelstate(state, &state);
}

static int finish(bool is_done, const struct fault *fault)
{
	last_error[0] = '\0';
	if (is_done) {
		return PROGRAM_OK;
	}
	snprintf(last_error, sizeof(last_error), "%s", fault->text);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (strcmp(statuses[i].code, fault->code) == 0) {
			return statuses[i].status;
		}
	}
	return PROGRAM_FAILED;
}

static bool is_gone(struct fault *fault)
{
	fault_set(fault, "not_armed", "profd is gone, or does not listen to this process");
	return session.is_lost || (session.has_hello && !session_is_open());
}

static bool is_busy(struct fault *fault)
{
	fault_set(fault, "busy", "a capture %s in this process already: one at a time is possible",
		session.frames.state == FRAMES_CAPTURING ? "is under way" : "waits");
	return session.frames.state != FRAMES_IDLE || session.asking.state != ASKING_NOT;
}

/* Whose frame began last; before any has begun, the newest. NULL: there is none. */
static const struct session_device *find_device(struct fault *fault)
{
	const struct session_device *device = session.devices;
	while (device != NULL && device->counts != session.current) {
		device = device->next;
	}
	device = device != NULL ? device : session.devices;
	if (device == NULL) {
		fault_set(fault, "no_device",
			"the program has no VkDevice, or context of OpenGL, that could be captured");
	}
	return device;
}

/* At most so long the program waits. The lock is released meanwhile. */
static enum asking_state wait_for_answer(void)
{
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += GPU_WIRE_ASK_MS / 1000;
	while (session.asking.state == ASKING_WAITS && !session.is_lost &&
		   pthread_cond_timedwait(&session.heard, &session.lock, &end) != ETIMEDOUT) {
	}
	enum asking_state state = session.asking.state;
	session.asking.state = ASKING_NOT;
	return state;
}

static bool ask(const char *label, struct fault *fault)
{
	session.asking.number++;
	session.asking.state = ASKING_WAITS;
	report_ask(&session.channel, session.asking.number, label);
	switch (wait_for_answer()) {
	case ASKING_GRANTED:
		return true;
	case ASKING_REFUSED:
		*fault = session.asking.fault;
		return false;
	default:
		return is_gone(fault) ? false
							  : fault_set(fault, "no_answer", "profd did not answer within %d ms",
									GPU_WIRE_ASK_MS);
	}
}

/* What was granted and cannot begin any more, profd is told of. */
static bool begin(struct fault *fault)
{
	struct fault told;
	const struct session_device *device = find_device(fault);
	if (device == NULL || is_gone(fault) ||
		(!frames_start_now(&session.frames, device->counts) && is_busy(fault))) {
		fault_set(&told, "not_capturing", "%s", fault->text);
		report_fault(&session.channel, &told);
		return false;
	}
	session.wish = session.asking.wish;
	session.waits_ns = 0;
	session.is_programs = recording_begin(device->counts, device->instance, fault);
	return session.is_programs;
}

int profd_gpu_layer_start(const char *label)
{
	struct fault fault = {0};
	int state = enter();
	bool is_begun = !is_gone(&fault) && find_device(&fault) != NULL && !is_busy(&fault) &&
					session_check(&fault) && ask(label, &fault) && begin(&fault);
	leave(state);
	return finish(is_begun, &fault);
}

int profd_gpu_layer_stop(void)
{
	struct fault fault = {0};
	bool is_made = false;
	int state = enter();
	if (session.frames.state == FRAMES_CAPTURING && session.is_programs) {
		is_made =
			recording_can_end(true, &fault) && recording_end(RECORDING_ENDED_BY_PROGRAM, &fault);
	} else {
		fault_set(&fault, "not_capturing",
			"no capture that the program began is under way: it has none begun, or it has ended");
	}
	leave(state);
	return finish(is_made, &fault);
}

int profd_gpu_layer_is_armed(void)
{
	struct fault unused;
	pthread_mutex_lock(&session.lock);
	bool is_armed = !is_gone(&unused);
	pthread_mutex_unlock(&session.lock);
	return is_armed;
}

const char *profd_gpu_layer_error(void)
{
	return last_error;
}

static bool is_awaited(const struct gpu_wire_message *message)
{
	uint64_t asked = 0;
	return session.asking.state == ASKING_WAITS && gpu_wire_get_number(message, "asked", &asked) &&
		   asked == session.asking.number;
}

static void refuse(const struct fault *fault)
{
	session.asking.state = ASKING_REFUSED;
	session.asking.fault = *fault;
	pthread_cond_broadcast(&session.heard);
}

void program_granted(
	const struct gpu_wire_message *message, const struct wish *wish, const struct fault *fault)
{
	struct fault late;
	bool is_wanted = is_awaited(message);
	if (is_wanted && wish != NULL) {
		session.asking.state = ASKING_GRANTED;
		session.asking.wish = *wish;
		pthread_cond_broadcast(&session.heard);
		return;
	}
	if (is_wanted) {
		refuse(fault);
	} else {
		fault_set(&late, "not_capturing", "the program does not wait for this start any more");
		fault = &late;
	}
	report_fault(&session.channel, fault);
}

void program_refused(const struct gpu_wire_message *message)
{
	struct fault fault = {0};
	const char *code = gpu_wire_get(message, "code"), *text = gpu_wire_get(message, "text");
	if (is_awaited(message)) {
		fault_set(&fault, code != NULL && strcmp(code, "capture_busy") == 0 ? "busy" : "refused",
			"profd refuses (%.32s): %.640s", code != NULL ? code : "", text != NULL ? text : "");
		refuse(&fault);
	}
}

void program_cancel(void)
{
	struct fault fault = {0};
	if (session.asking.state == ASKING_GRANTED) {
		fault_set(&fault, "refused", "profd was asked to stop it before it began");
		refuse(&fault);
	}
}
