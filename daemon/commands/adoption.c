#include "commands/adoption.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
#include <time.h>

#include "commands/arming.h"
#include "commands/build.h"
#include "commands/device_check.h"
#include "commands/methods.h"
#include "commands/params.h"
#include "protocol/clock.h"
#include "protocol/limits.h"
#include "protocol/names.h"
#include "target/target.h"

#define LOOK_MS        10
#define LOOK_SLOW_MS   100
#define SLOW_AFTER_NS  UINT64_C(1000000000)
#define AGAIN_NS       200000 /* between two looks for arguments, */
#define AGAIN_MOST     10     /* and how many more there are */
#define ARGUMENT_BYTES 65536  /* as many as are read; a record shows less */

struct adoption {
	struct daemon *daemon;
	struct adoption *next;
	struct process_watch watch;
	uv_timer_t timer;
	uint64_t began_ns;
};

/* What a process is, read from /proc. */
struct facts {
	char text[ARGUMENT_BYTES + 1];
	const char *argv[ARGUMENT_BYTES / 2 + 2];
	char cwd[PATH_MAX];
	bool
		has_memory; /* it is a program, no zombie and no thread of the kernel: those have no arguments */
};

static void split(struct facts *facts, size_t len)
{
	size_t count = 0;
	const size_t most = sizeof(facts->argv) / sizeof(facts->argv[0]) - 1;
	facts->text[len] = '\0';
	for (size_t pos = 0; pos < len && count < most; pos += strlen(facts->text + pos) + 1) {
		facts->argv[count++] = facts->text + pos;
	}
	facts->argv[count] = NULL;
}

/*
 * In the middle of an exec there are none for some microseconds, which its parent may have seen begin already. So what seems to be a thread of the
 * kernel is asked a few times.
 */
static bool read_arguments(pid_t pid, struct facts *facts, size_t *len, struct error *err)
{
	const struct timespec pause = {.tv_nsec = AGAIN_NS};
	for (int i = 0;; i++) {
		if (!target_arguments(pid, facts->text, ARGUMENT_BYTES, len, err)) {
			return false;
		}
		if (*len > 0 || i == AGAIN_MOST) {
			return true;
		}
		nanosleep(&pause, NULL);
	}
}

/* One that has no arguments is known by its thread's name. Owned; NULL: err. */
static struct facts *read_facts(pid_t pid, struct error *err)
{
	size_t len = 0;
	struct facts *facts = malloc(sizeof(*facts));
	if (facts == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	if (!read_arguments(pid, facts, &len, err)) {
		free(facts);
		return NULL;
	}
	len = len < ARGUMENT_BYTES ? len : ARGUMENT_BYTES;
	facts->has_memory = len > 0;
	if (len == 0 && target_thread_name(pid, pid, facts->text, NULL)) {
		len = strlen(facts->text);
	}
	split(facts, len);
	if (!target_cwd(pid, facts->cwd, NULL)) {
		facts->cwd[0] = '\0'; /* it is gone, or out of reach */
	}
	return facts;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void destroy(struct adoption *adoption)
{
	struct adoption **link = &adoption->daemon->adoptions;
	while (*link != adoption) {
		link = &(*link)->next;
	}
	*link = adoption->next;
	process_unwatch(&adoption->watch);
	uv_close((uv_handle_t *)&adoption->timer, on_closed);
}

static void look(struct adoption *adoption)
{
	struct process *process = adoption->watch.process;
	pid_t pid = process_pid(process);
	/* One that is ending is no gate any more either: its pidfd tells. */
	struct facts *facts = target_is_gate(pid) ? NULL : read_facts(pid, NULL);
	if (facts != NULL && facts->has_memory) {
		process_left_gate(process, facts->argv, facts->cwd);
		destroy(adoption);
	}
	free(facts);
}

static void on_look(uv_timer_t *timer)
{
	struct adoption *adoption = timer->data;
	if (clock_monotonic_ns() - adoption->began_ns > SLOW_AFTER_NS) {
		uv_timer_set_repeat(timer, LOOK_SLOW_MS);
	}
	look(adoption);
}

static void on_exited(void *context, struct process *process)
{
	(void)process;
	destroy(context);
}

static const struct process_watch_ops watch_ops = {.exited = on_exited};

static struct adoption *create(struct daemon *daemon)
{
	struct adoption *adoption = calloc(1, sizeof(*adoption));
	if (adoption == NULL) {
		return NULL;
	}
	adoption->daemon = daemon;
	adoption->watch = (struct process_watch){.ops = &watch_ops, .context = adoption};
	adoption->began_ns = clock_monotonic_ns();
	uv_timer_init(daemon->loop, &adoption->timer);
	adoption->timer.data = adoption;
	adoption->next = daemon->adoptions;
	daemon->adoptions = adoption;
	return adoption;
}

void adoption_look(struct daemon *daemon, const struct process *process)
{
	for (struct adoption *adoption = daemon->adoptions; adoption != NULL;
		 adoption = adoption->next) {
		if (adoption->watch.process == process) {
			look(adoption);
			return;
		}
	}
}

void adoptions_finish(struct daemon *daemon)
{
	while (daemon->adoptions != NULL) {
		destroy(daemon->adoptions);
	}
}

/* The facts were read before its pidfd was opened, and it still lived then: they are of the same process, unless its number was used anew within
 * microseconds. */
static struct process *take(
	struct daemon *daemon, const json_t *build_id, pid_t pid, struct error *err)
{
	struct facts *facts = target_is_ours(pid, err) ? read_facts(pid, err) : NULL;
	if (facts == NULL) {
		return NULL;
	}
	struct process_adoption options = {
		.build_id = (json_t *)build_id,
		.pid = pid,
		.argv = facts->argv,
		.cwd = facts->cwd,
		.is_held = target_is_gate(pid),
	};
	struct process *process = processes_adopt(daemon->processes, &options, err);
	free(facts);
	return process;
}

static struct process *adopt(
	struct daemon *daemon, const json_t *params, struct build *build, struct error *err)
{
	pid_t pid = (pid_t)command_integer(params, "pid", 0);
	if (pid == getpid()) {
		params_refuse(
			err, "pid", json_object_get(params, "pid"), "another process than profd itself");
		return NULL;
	}
	struct adoption *adoption = create(daemon);
	if (adoption == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "out of memory");
		return NULL;
	}
	struct process *process = take(daemon, json_object_get(params, "build_id"), pid, err);
	if (process == NULL) {
		destroy(adoption);
		return NULL;
	}
	build_begin(build, process);
	if (process_state(process) == PROCESS_HELD) {
		process_watch(process, &adoption->watch);
		uv_timer_start(&adoption->timer, on_look, LOOK_MS, LOOK_MS);
	} else {
		destroy(adoption);
	}
	return process;
}

/* Only the client can give the gate what arms it: the reply tells it. */
static bool arm(struct daemon *daemon, const json_t *params, struct build *build, struct error *err)
{
	const json_t *gpu = json_object_get(params, "gpu");
	if (!json_is_object(gpu)) {
		return true;
	}
	char **environment = arming_environment_of_gate((pid_t)command_integer(params, "pid", 0), err);
	struct gpu_program *program =
		environment != NULL ? arming_create(daemon, gpu, (const char *const *)environment, err)
							: NULL;
	free(environment);
	if (program != NULL) {
		build_take_gpu(build, program, arming_lets_program_ask(gpu));
	}
	return program != NULL;
}

static json_t *reply_of(const struct daemon *daemon, const struct process *process)
{
	json_t *record = build_record(daemon, process);
	const struct gpu_program *program = build_gpu(daemon, process);
	if (program != NULL) {
		json_object_set_new(record, "environment", arming_environment(program));
	}
	return record;
}

static void adopt_now(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	struct build *build = build_create(daemon);
	struct process *process = NULL;
	if (build == NULL) {
		error_set(&err, ERROR_LIMIT_EXCEEDED, "out of memory");
	} else if (arm(daemon, params, build, &err)) {
		process = adopt(daemon, params, build, &err);
	}
	if (process == NULL) {
		build_destroy(build);
		request_fail(request, &err);
		return;
	}
	request_reply(request, reply_of(daemon, process));
}

static void adopt_process(struct daemon *daemon, struct request *request, const json_t *params)
{
	struct error err = {0};
	if (!arming_needs_check(json_object_get(params, "gpu"))) {
		adopt_now(daemon, request, params);
		return;
	}
	char **environment = arming_environment_of_gate((pid_t)command_integer(params, "pid", 0), &err);
	if (environment != NULL) {
		device_check(daemon, request, params, environment, adopt_now);
	} else {
		request_fail(request, &err);
	}
}

static const struct param params_table[] = {
	{.name = "pid",
		.type = PARAM_INTEGER,
		.required = true,
		.min = 1,
		.max = INT32_MAX,
		.about = "A process of this user, behind profd-gate or running already."},
	{.name = "build_id",
		.type = PARAM_ID,
		.about = "The client's name for it; left out: one is made."},
	{.name = "request_key",
		.type = PARAM_STRING,
		.min = 1,
		.max = LIMIT_ID_BYTES,
		.about = "Within 10 minutes a repeated request with it returns the first result."},
	{.name = "gpu",
		.type = PARAM_OPTIONS,
		.members = arming_params,
		.fallback = "false",
		.about = "Arm the program for StartGpuTrace; only behind profd-gate."},
	{.name = NULL},
};

static const char *const events[] = {EVENT_PROCESS_STARTED, EVENT_PROCESS_EXITED, NULL};
static const char *const errors[] = {"build_exists", "process_not_found", "not_permitted",
	"limit_exceeded", "unsupported", "backend_unavailable", "io", "shutting_down", NULL};

const struct command adopt_process_command = {
	.name = "AdoptProcess",
	.params = params_table,
	.run = adopt_process,
	.about = "Observes a process that a client launched, or that runs already.",
	.result = "the record of GetProcess, with adopted true, environment?",
	.events = events,
	.errors = errors,
};
