#include "support/process_stage.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/programs.h"
#include "support/descriptors.h"

static void tell(struct seen *seen, char what)
{
	size_t len = strlen(seen->told);
	assert_true(len + 1 < sizeof(seen->told));
	seen->told[len] = what;
}

static void on_ready(void *context, struct process *process)
{
	assert_int_equal(process_state(process), PROCESS_HELD);
	tell(context, 'r');
}

static void on_running(void *context, struct process *process)
{
	assert_int_equal(process_state(process), PROCESS_RUNNING);
	tell(context, 'R');
}

static void on_failed(void *context, struct process *process, const struct error *err)
{
	struct seen *seen = context;
	(void)process;
	assert_null(seen->watch.process);
	tell(seen, 'f');
	seen->err = *err;
}

static void on_output(void *context, struct process *process, enum process_stream stream,
	uint64_t offset, const char *bytes, size_t len)
{
	struct seen *seen = context;
	(void)process;
	if (seen->bytes[1] + seen->bytes[2] == 0) {
		tell(seen, 'o');
	}
	seen->in_order = seen->in_order && offset == seen->bytes[stream] && len > 0;
	seen->bytes[stream] += len;
	size_t used = strlen(seen->text);
	size_t room = sizeof(seen->text) - 1 - used;
	memcpy(seen->text + used, bytes, len < room ? len : room);
}

static void on_exited(void *context, struct process *process)
{
	struct seen *seen = context;
	assert_null(seen->watch.process);
	assert_int_equal(process_state(process), PROCESS_EXITED);
	tell(seen, 'x');
	seen->exit = *process_exit(process);
}

static const struct process_watch_ops seen_ops = {
	on_ready, on_running, on_failed, on_output, on_exited};

void seen_prepare(struct seen *seen)
{
	memset(seen, 0, sizeof(*seen));
	seen->watch.ops = &seen_ops;
	seen->watch.context = seen;
	seen->in_order = true;
}

bool stage_launch(
	struct process_stage *stage, struct seen *seen, const struct process_options *options)
{
	seen_prepare(seen);
	seen->process = processes_launch(stage->processes, options, &seen->watch, &seen->err);
	return seen->process != NULL;
}

static void launch_script(struct process_stage *stage, const char *script, bool hold)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	const struct process_options options = {.argv = argv, .hold = hold};
	assert_true(stage_launch(stage, &stage->seen, &options));
	assert_string_equal(stage->seen.told, "");
}

void stage_launch_script(struct process_stage *stage, const char *script)
{
	launch_script(stage, script, false);
}

void stage_launch_script_until(struct process_stage *stage, const char *script, char what)
{
	stage_launch_script(stage, script);
	stage_run_until(stage, &stage->seen, what);
}

uint64_t stage_now_ms(void)
{
	return uv_hrtime() / 1000000;
}

static void on_guard(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
}

unsigned stage_run_until(struct process_stage *stage, const struct seen *seen, char what)
{
	bool too_late = false;
	unsigned turns = 0;
	uv_timer_t guard;
	uv_timer_init(&stage->loop, &guard);
	guard.data = &too_late;
	uv_timer_start(&guard, on_guard, STAGE_WAIT_MS, 0);
	while (strchr(seen->told, what) == NULL && !too_late) {
		uv_run(&stage->loop, UV_RUN_ONCE);
		turns++;
	}
	uv_close((uv_handle_t *)&guard, NULL);
	uv_run(&stage->loop, UV_RUN_NOWAIT);
	assert_false(too_late);
	return turns;
}

void stage_run_script(struct process_stage *stage, const char *script)
{
	stage_launch_script_until(stage, script, 'x');
}

void stage_hold_script(struct process_stage *stage, const char *script)
{
	launch_script(stage, script, true);
	stage_run_until(stage, &stage->seen, 'r');
}

uint64_t stage_stop(struct process_stage *stage, int signal, uint64_t grace_ms)
{
	uint64_t start = stage_now_ms();
	assert_true(process_stop(stage->seen.process, signal, grace_ms, &stage->err));
	stage_run_until(stage, &stage->seen, 'x');
	return stage_now_ms() - start;
}

void stage_run(struct process_stage *stage, struct seen *seen,
	const struct process_options *options, char what)
{
	assert_true(stage_launch(stage, seen, options));
	stage_run_until(stage, seen, what);
}

bool stage_is_gone(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return true;
	}
	ssize_t count = read(fd, text, sizeof(text) - 1);
	close(fd);
	const char *bracket = count > 0 ? strrchr(text, ')') : NULL;
	return bracket == NULL || bracket[2] == 'Z' || bracket[2] == 'X';
}

int stage_set_up(void **state)
{
	struct process_stage *stage = calloc(1, sizeof(*stage));
	struct error err;
	signal(SIGPIPE, SIG_IGN);
	if (!programs_find("profd-gate", stage->gate_path, sizeof(stage->gate_path), &err)) {
		fprintf(stderr, "%s\n", err.message);
		free(stage);
		return -1;
	}
	/* The first loop of a process opens a pipe that libuv keeps. */
	uv_loop_init(&stage->loop);
	uv_loop_close(&stage->loop);
	stage->descriptors = descriptors_open();
	uv_loop_init(&stage->loop);
	stage->processes = processes_create(&stage->loop, stage->gate_path, &err);
	*state = stage;
	return stage->processes != NULL ? 0 : -1;
}

static bool is_clean(struct process_stage *stage)
{
	if (uv_loop_close(&stage->loop) != 0) {
		fprintf(stderr, "handles are left open\n");
		return false;
	}
	if (descriptors_open() != stage->descriptors) {
		fprintf(
			stderr, "%zu descriptors before, %zu after\n", stage->descriptors, descriptors_open());
		return false;
	}
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) {
		fprintf(stderr, "a child is left\n");
		return false;
	}
	return true;
}

int stage_tear_down(void **state)
{
	struct process_stage *stage = *state;
	processes_destroy(stage->processes);
	uv_run(&stage->loop, UV_RUN_DEFAULT);
	bool clean = is_clean(stage);
	free(stage);
	return clean ? 0 : -1;
}
