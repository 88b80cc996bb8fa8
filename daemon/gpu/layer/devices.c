#include "gpu/layer/devices.h"

#include "gpu/layer/report.h"
#include "gpu/layer/session_state.h"
#include "protocol/gpu_pick.h"

const char *devices_wish(void)
{
	pthread_mutex_lock(&session.lock);
	const char *wish = session.device_wish;
	pthread_mutex_unlock(&session.lock);
	return wish;
}

void devices_accept(void)
{
	pthread_mutex_lock(&session.lock);
	session.no_device.code = NULL;
	pthread_mutex_unlock(&session.lock);
}

void devices_refuse(const struct fault *fault)
{
	pthread_mutex_lock(&session.lock);
	bool is_told = session.no_device.code != NULL;
	session.no_device = *fault;
	/* What is captured already goes on; the next start is told. */
	if (!is_told && session.is_open && session.frames.state != FRAMES_CAPTURING) {
		frames_stop(&session.frames);
		report_fault(&session.channel, fault);
	}
	pthread_mutex_unlock(&session.lock);
}

const struct session_device *devices_find(const struct frame_counts *counts)
{
	const struct session_device *device = session.devices;
	while (device != NULL && device->counts != counts) {
		device = device->next;
	}
	return device;
}

void devices_mark(void)
{
	struct gpu_pick_device known[GPU_PICK_MOST] = {0};
	bool chosen[GPU_PICK_MOST] = {false};
	size_t count = 0, i = 0;
	const char *wish = session.wish.device;
	struct session_device *device = session.devices;
	for (; device != NULL && count < GPU_PICK_MOST; device = device->next) {
		known[count++] =
			(struct gpu_pick_device){device->told.name, device->told.uuid, device->told.index};
	}
	if (*wish != '\0') {
		gpu_pick(wish, known, count, chosen);
	}
	for (device = session.devices; device != NULL; device = device->next, i++) {
		device->counts->is_left_out = *wish != '\0' && (i >= count || !chosen[i]);
	}
}
