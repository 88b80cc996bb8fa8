#include "gpu/layer/wish.h"

#include <string.h>

#define CODE "start_failed"

static const char *const rule_names[] = {
	[FRAME_AUTO] = "auto",
	[FRAME_SUBMIT] = "submit",
	[FRAME_PRESENT] = "present",
	[FRAME_LABEL] = "label",
	[FRAME_MANUAL] = "manual",
};

const char *wish_rule_name(enum frame_rule rule)
{
	return rule_names[rule];
}

/* False: it is no rule. */
static bool find_rule(const char *name, enum frame_rule *found)
{
	size_t rule = 0, count = sizeof(rule_names) / sizeof(rule_names[0]);
	while (name != NULL && rule < count && strcmp(name, rule_names[rule]) != 0) {
		rule++;
	}
	*found = (enum frame_rule)rule;
	return name != NULL && rule < count;
}

static bool read_counts(
	const struct gpu_wire_message *message, struct frame_wish *frames, struct fault *fault)
{
	const char *counts = gpu_wire_get(message, "counts");
	frames->counts = FRAME_AUTO;
	if (counts == NULL) {
		return true;
	}
	if (frames->rule != FRAME_MANUAL) {
		return fault_set(fault, CODE, "counts=%.64s is for by=manual only", counts);
	}
	if (!find_rule(counts, &frames->counts) || frames->counts == FRAME_AUTO ||
		frames->counts == FRAME_MANUAL) {
		return fault_set(fault, CODE, "counts=%.64s is none of submit, present, label", counts);
	}
	return true;
}

static bool read_rule(
	const struct gpu_wire_message *message, struct frame_wish *frames, struct fault *fault)
{
	const char *by = gpu_wire_get(message, "by"), *label = gpu_wire_get(message, "label");
	if (!find_rule(by, &frames->rule)) {
		return fault_set(fault, CODE, "by=%.64s is none of auto, submit, present, label, manual",
			by != NULL ? by : "");
	}
	if (!read_counts(message, frames, fault)) {
		return false;
	}
	if (frames->rule != FRAME_LABEL && frames->counts != FRAME_LABEL) {
		return true;
	}
	if (label == NULL || label[0] == '\0' || strlen(label) >= sizeof(frames->label)) {
		return fault_set(fault, CODE, "by=label needs a label of 1 to %zu bytes, this has %zu",
			sizeof(frames->label) - 1, label != NULL ? strlen(label) : 0);
	}
	memcpy(frames->label, label, strlen(label) + 1);
	return true;
}

static bool read_range(
	const struct gpu_wire_message *message, struct frame_wish *frames, struct fault *fault)
{
	bool has_first = gpu_wire_get_number(message, "first", &frames->first);
	bool has_last = gpu_wire_get_number(message, "last", &frames->last);
	bool has_next = gpu_wire_get_number(message, "next", &frames->next);
	if (frames->rule == FRAME_MANUAL) {
		if (gpu_wire_get(message, "first") != NULL || gpu_wire_get(message, "last") != NULL ||
			gpu_wire_get(message, "next") != NULL) {
			return fault_set(fault, CODE, "by=manual has neither first, last nor next");
		}
		return true;
	}
	bool is_range = has_first && has_last && gpu_wire_get(message, "next") == NULL;
	bool is_next = has_next && frames->next > 0 && gpu_wire_get(message, "first") == NULL &&
				   gpu_wire_get(message, "last") == NULL;
	if (!is_range && !is_next) {
		return fault_set(fault, CODE, "a start has either first and last, or next above 0");
	}
	if (is_range && frames->last < frames->first) {
		return fault_set(fault, CODE, "the last frame, %llu, is before the first, %llu",
			(unsigned long long)frames->last, (unsigned long long)frames->first);
	}
	return true;
}

static bool read_template(const struct gpu_wire_message *message, char *out, struct fault *fault)
{
	const char *template = gpu_wire_get(message, "template");
	size_t len = template != NULL ? strlen(template) : 0;
	if (len == 0 || template[0] != '/' || len >= GPU_WIRE_PATH_BYTES) {
		return fault_set(fault, CODE,
			"template has to be an absolute path of at most %d bytes, this has %zu",
			GPU_WIRE_PATH_BYTES - 1, len);
	}
	memcpy(out, template, len + 1);
	return true;
}

static bool read_device(const struct gpu_wire_message *message, char *out, struct fault *fault)
{
	const char *device = gpu_wire_get(message, "device");
	size_t len = device != NULL ? strlen(device) : 0;
	if (device != NULL && (len == 0 || len >= GPU_PICK_WISH_BYTES)) {
		return fault_set(fault, CODE, "device has to have 1 to %d bytes, this has %zu",
			GPU_PICK_WISH_BYTES - 1, len);
	}
	memcpy(out, device != NULL ? device : "", len + 1);
	return true;
}

bool wish_read(const struct gpu_wire_message *message, struct wish *wish, struct fault *fault)
{
	memset(wish, 0, sizeof(*wish));
	return read_rule(message, &wish->frames, fault) && read_range(message, &wish->frames, fault) &&
		   read_device(message, wish->device, fault) &&
		   read_template(message, wish->template, fault);
}
