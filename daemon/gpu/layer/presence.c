#include "gpu/layer/presence.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/layer/channel.h"
#include "gpu/layer/listening.h"
#include "gpu/layer/recording.h"
#include "gpu/layer/renderdoc.h"
#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "gpu/layer/shaders.h"

#define EXIT_LOCK_S 5 /* the exit handler waits so long for a call that is under way */

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
		recording_save(RECORDING_ENDED);
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

void presence_watch_exit(void)
{
	if (!atomic_load(&session.has_exit_handler)) {
		atomic_store(&session.has_exit_handler, atexit(at_exit) == 0);
	}
}

static void at_exit_again(void *unused)
{
	(void)unused;
	at_exit();
}

void presence_stay_first(int (*add)(void (*handler)(void *), void *argument, void *dso))
{
	if (atomic_load(&session.has_exit_handler)) {
		add(at_exit_again, NULL, NULL); /* this library is never unloaded */
	}
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
	channel_close(&session.channel);
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

static void say_hello(bool is_again)
{
	report_hello(&session.channel, session.token, session.api == SESSION_GL ? "gl" : "vulkan",
		session.order, &session.renderdoc, is_again);
}

/* The oldest first, as they were made. */
static void tell_devices(const struct session_device *device)
{
	if (device != NULL) {
		tell_devices(device->next);
		report_device(&session.channel, &device->told);
	}
}

bool presence_renew(void)
{
	if (!channel_connect(&session.channel, session.socket, true)) {
		return false;
	}
	say_hello(true);
	tell_devices(session.devices);
	session_tell_frame(true);
	return true;
}

void presence_hello(enum session_api api, const void *const *below, unsigned count)
{
	const char *path = getenv("PROFD_GPU_SOCKET"), *token = getenv("PROFD_GPU_TOKEN");
	const char *device = getenv("PROFD_GPU_DEVICE");
	pthread_mutex_lock(&session.lock);
	if (!session.has_hello && path != NULL && token != NULL) {
		session.has_hello = true;
		session.socket = strdup(path);
		session.token = strdup(token);
		session.device_wish = device != NULL && *device != '\0' ? strdup(device) : NULL;
		session.shaders = shaders_create();
		if (session.shaders != NULL && session.socket != NULL && session.token != NULL &&
			channel_connect(&session.channel, path, false)) {
			prepare();
			session.api = api;
			session.frames.is_blind = api == SESSION_GL;
			renderdoc_find(&session.renderdoc);
			session.order = find_order(below, count);
			session.is_open = true;
			say_hello(false);
			session.is_open = channel_listen(&session.channel, &listening);
		}
	}
	pthread_mutex_unlock(&session.lock);
}

void presence_wait_for_greeting(void)
{
	uint64_t end_ns = clock_monotonic_ns() + GPU_WIRE_GREETING_MS * UINT64_C(1000000);
	struct timespec end = {(time_t)(end_ns / 1000000000), (long)(end_ns % 1000000000)};
	pthread_mutex_lock(&session.lock);
	while (session_is_open() && !session.is_greeted &&
		   pthread_cond_timedwait(&session.heard, &session.lock, &end) != ETIMEDOUT) {
	}
	session.is_greeted = true;
	pthread_mutex_unlock(&session.lock);
}
