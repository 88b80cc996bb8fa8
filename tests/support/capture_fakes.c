#include "support/capture_fakes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/clock.h"
#include "server/events.h"

/* The process. */

enum process_state process_state(const struct process *process)
{
	return process->state;
}

bool process_is_adopted(const struct process *process)
{
	(void)process;
	return false;
}

const char *process_state_name(enum process_state state)
{
	return state == PROCESS_EXITED ? "exited" : "starting";
}

const json_t *process_build_id(const struct process *process)
{
	return process->build_id;
}

const char *process_key(const struct process *process)
{
	(void)process;
	return "7";
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

const char *process_cwd(const struct process *process)
{
	(void)process;
	return "/";
}

const char *const *process_argv(const struct process *process, size_t *count)
{
	static const char *const argv[] = {"prog",
		"a\xff"
		"b",
		NULL};
	(void)process;
	*count = 2;
	return argv;
}

const struct process_exit *process_exit(const struct process *process)
{
	return process->state == PROCESS_EXITED ? &process->exit : NULL;
}

const struct error *process_launch_error(const struct process *process)
{
	return process->launch_error;
}

void process_watch(struct process *process, struct process_watch *watch)
{
	watch->process = process;
	watch->next = process->watches;
	process->watches = watch;
}

void process_unwatch(struct process_watch *watch)
{
	if (watch->process != NULL) {
		struct process_watch **link = &watch->process->watches;
		while (*link != watch) {
			link = &(*link)->next;
		}
		*link = watch->next;
		watch->process = NULL;
	}
}

void stage_process_becomes(struct process *process, enum process_state state)
{
	process->state = state;
	struct process_watch *next;
	for (struct process_watch *watch = process->watches; watch != NULL; watch = next) {
		next = watch->next;
		if (state == PROCESS_RUNNING) {
			watch->ops->running(watch->context, process);
		} else {
			watch->ops->exited(watch->context, process);
		}
	}
}

/* The sampler. */

struct sampler stage_sampler;

static bool sampler_start(const struct sampler_config *config, struct sampler **sampler,
	struct sampler_effective *effective, struct error *err)
{
	if (stage_sampler.refuses) {
		return error_set(err, ERROR_HZ_TOO_HIGH, "the kernel allows 1000 Hz, not %llu",
			(unsigned long long)config->hz);
	}
	stage_sampler.sink = config->sink;
	stage_sampler.pid = config->pid;
	stage_sampler.is_gated = config->is_gated;
	stage_sampler.runs = true;
	*sampler = &stage_sampler;
	*effective = (struct sampler_effective){.name = "perf",
		.hz = config->hz,
		.period_ns = 1000000000 / config->hz,
		.kernel_sampled = true,
		.ring_bytes = 4096};
	strcpy(effective->warning_code, "rings_small");
	strcpy(effective->warning, "the rings are small");
	strcpy(effective->warning_hint, "raise a limit");
	return true;
}

static void sampler_stop(struct sampler *sampler)
{
	const struct sampler_cpu_time time = {
		.time_ns = clock_monotonic_ns(), .pid = sampler->pid, .total_ns = sampler->cpu_time_ns};
	sampler->sink.cpu_time(sampler->sink.context, &time);
	sampler->runs = false;
}

static const struct sampler_ops fake_sampler_ops = {
	.name = "perf", .start = sampler_start, .stop = sampler_stop};

const struct sampler_ops *sampler_choose(
	const char *name, const struct sampler_config *config, struct error *err)
{
	(void)name;
	(void)config;
	(void)err;
	return &fake_sampler_ops;
}

void stage_emit(size_t count, size_t frames)
{
	uint64_t stack[127];
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < frames; k++) {
			stack[k] = 0x400000 + (stage_sampler.next_stack * 131 + k * 7919) % 0xfffff;
		}
		stage_sampler.next_stack++;
		struct sampler_sample sample = {.time_ns = clock_monotonic_ns(),
			.pid = stage_sampler.pid,
			.tid = stage_sampler.pid,
			.user_frames = stack,
			.user_count = frames};
		stage_sampler.sink.sample(stage_sampler.sink.context, &sample);
	}
}

/* The events. */

json_t *stage_events;

void events_publish(struct events *events, const char *name, enum events_class class,
	const struct events_subject *subject, json_t *params)
{
	(void)events;
	(void)class;
	assert_string_equal(
		subject->capture_id, json_string_value(json_object_get(params, "capture_id")));
	json_array_append_new(stage_events, json_pack("{s:s, s:o}", "name", name, "params", params));
}

void events_forget(struct events *events, const struct events_subject *subject)
{
	(void)events;
	json_array_append_new(stage_events, json_pack("{s:s, s:{s:s}}", "name", "forgotten", "params",
											"capture_id", subject->capture_id));
}

const char *stage_event_names(void)
{
	static char names[1024];
	const char *last = "";
	size_t i;
	json_t *event;
	names[0] = '\0';
	json_array_foreach(stage_events, i, event)
	{
		const char *name = json_string_value(json_object_get(event, "name"));
		if (strcmp(name, last) != 0) {
			strcat(strcat(names, names[0] != '\0' ? " " : ""),
				strncmp(name, "SamplingProfile", 15) == 0 ? name + 15 : name);
		}
		last = name;
	}
	return names;
}

const json_t *stage_event_params(const char *name)
{
	size_t i;
	json_t *event, *found = NULL;
	json_array_foreach(stage_events, i, event)
	{
		if (strcmp(json_string_value(json_object_get(event, "name")), name) == 0) {
			found = json_object_get(event, "params");
		}
	}
	assert_non_null(found);
	return found;
}

const char *stage_member(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

json_int_t stage_number(const json_t *object, const char *name)
{
	assert_true(json_is_integer(json_object_get(object, name)));
	return json_integer_value(json_object_get(object, name));
}

static const json_t *failure(void)
{
	return json_object_get(stage_event_params("SamplingProfileFailed"), "error");
}

const char *stage_failure_code(void)
{
	return stage_member(json_object_get(failure(), "data"), "code");
}

const char *stage_failure_message(void)
{
	return stage_member(failure(), "message");
}
