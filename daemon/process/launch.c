#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/environment.h"
#include "process/record.h"

#define GATE_EXIT_MS 1000 /* what a gate gets to exit by itself */

static void close_stdio(const int stdio[3])
{
	for (int i = 2; i >= 0; i--) {
		if (stdio[i] >= 0 && (i == 0 || stdio[i] != stdio[0])) {
			close(stdio[i]);
		}
	}
}

static bool start_gate(struct process *process, const struct process_options *options,
	const int stdio[3], struct error *err)
{
	const char *const *base = options->env_exact ? NULL : (const char *const *)environ;
	char **environment = environment_create(base, options->env, err);
	if (environment == NULL) {
		return false;
	}
	const struct processes *table = process->table;
	const struct gate_options gate = {
		.gate_path = table->gate_path,
		.argv = options->argv,
		.env = (const char *const *)environment,
		.cwd = options->cwd,
		.new_group = process->stdio != PROCESS_STDIO_PTY,
		.new_terminal = process->stdio == PROCESS_STDIO_PTY,
		.die_with_parent = !process->leaves,
		.umask_bits = table->umask_bits,
		.nofile_soft = table->nofile_soft,
		.nofile_hard = table->nofile_hard,
		.profiler_pid = options->profiler_pid,
		.stdio = {stdio[0], stdio[1], stdio[2]},
	};
	bool started = gate_start(&process->launch->gate, &gate, err);
	free(environment);
	return started;
}

static void on_launch_closed(uv_handle_t *handle)
{
	struct launch *launch = handle->data;
	struct process *process = launch->process;
	free(launch);
	process_handle_closed(process);
}

void process_close_launch(struct process *process)
{
	struct launch *launch = process->launch;
	if (launch == NULL) {
		return;
	}
	process->launch = NULL;
	uv_close((uv_handle_t *)&launch->poll, on_launch_closed);
	gate_close(&launch->gate);
}

static void become_running(struct process *process)
{
	process->state = PROCESS_RUNNING;
	process_close_launch(process);
	process_tell_running(process);
}

/*
 * What the gate did not become is of no use; the error is told once it has been reaped. The exit code of a held one is the gate's own: it
 * exits once it has said why.
 */
static void fail_launch(struct process *process)
{
	struct launch *launch = process->launch;
	launch->failed = true;
	uv_poll_stop(&launch->poll);
	process_expect_end(process, process->was_held ? GATE_EXIT_MS : 0);
}

static void become_ready(struct process *process)
{
	if (process->state != PROCESS_STARTING) {
		return;
	}
	process->state = PROCESS_HELD;
	process->was_held = process->hold && !process->stopping;
	process_tell_ready(process);
	struct error err = {0};
	if (process->hold || process->stopping || process_resume(process, &err)) {
		return;
	}
	if (process->launch != NULL && !process->launch->failed) {
		process->launch->err = err;
		fail_launch(process);
	}
}

static void on_gate(uv_poll_t *poll, int status, int events)
{
	(void)status; /* an error shows in the read */
	(void)events;
	struct launch *launch = poll->data;
	struct process *process = launch->process;
	switch (gate_read(&launch->gate, process->went, &launch->err)) {
	case GATE_WAITING:
		break;
	case GATE_IS_READY:
		become_ready(process);
		break;
	case GATE_RUNNING:
		become_running(process);
		break;
	case GATE_FAILED:
		fail_launch(process);
		break;
	}
}

void process_settle_launch(struct process *process)
{
	struct launch *launch = process->launch;
	if (launch == NULL || launch->failed) {
		return;
	}
	enum gate_state state;
	do {
		state = gate_read(&launch->gate, process->went, &launch->err);
	} while (state == GATE_IS_READY);
	if (state == GATE_RUNNING) {
		become_running(process);
		return;
	}
	if (state == GATE_WAITING) {
		error_set(&launch->err, ERROR_LAUNCH_FAILED, "profd-gate ended without a word");
		error_detail(&launch->err, "gate_died");
	}
	launch->failed = true;
}

static void on_ended(struct pidfd_watch *watch)
{
	struct process *process = watch->context;
	process->has_ended = true;
	process_release_terminal(process);
	process_settle_launch(process);
	process_advance(process);
}

static void on_pidfd_closed(struct pidfd_watch *watch)
{
	process_handle_closed(watch->context);
}

/* Watches the gate's words and the process's end. */
static bool watch_gate(struct process *process, struct error *err)
{
	uv_loop_t *loop = process->table->loop;
	struct launch *launch = process->launch;
	process->ended.ended = on_ended;
	process->ended.closed = on_pidfd_closed;
	process->ended.context = process;
	if (!pidfd_watch_open(&process->ended, loop, process->pid, err)) {
		return false;
	}
	process->handles++;
	int status = uv_poll_init(loop, &launch->poll, launch->gate.fd);
	if (status != 0) {
		return error_errno_as(err, ERROR_IO, status, "cannot watch profd-gate");
	}
	process->handles++;
	launch->poll.data = launch;
	uv_poll_start(&launch->poll, UV_READABLE, on_gate);
	return true;
}

/* The gate is there and waits: what the process shall have before it may run. */
static bool prepare(struct process *process, struct error *err)
{
	struct processes *table = process->table;
	if (!process->leaves) {
		process->guarded = true;
		if (!guard_add(&table->guard, process->pid, err)) {
			return false;
		}
	}
	if (process->files[0] != '\0' && !output_files_rename(table->data_fd, process->files,
										 process->started_unix_us, process->pid, err)) {
		return false;
	}
	return watch_gate(process, err);
}

static void unprepare(struct process *process)
{
	if (process->guarded) {
		guard_remove(&process->table->guard, process->pid);
		process->guarded = false;
	}
	kill(process->pid, SIGKILL); /* a waiting gate: it ends at once */
	waitpid(process->pid, NULL, 0);
}

static bool start(struct process *process, const struct process_options *options, struct error *err)
{
	int stdio[3] = {-1, -1, -1};
	bool started = process_open_stdio(process, stdio, err) &&
				   (process->leaves || guard_ensure(&process->table->guard, err)) &&
				   start_gate(process, options, stdio, err);
	close_stdio(stdio);
	return started;
}

bool process_start(
	struct process *process, const struct process_options *options, struct error *err)
{
	struct launch *launch = calloc(1, sizeof(*launch));
	if (launch == NULL) {
		return error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for another launch");
	}
	launch->process = process;
	launch->gate.fd = -1;
	process->launch = launch;
	if (!start(process, options, err)) {
		goto fail;
	}
	process->pid = launch->gate.pid;
	if (prepare(process, err)) {
		return true;
	}
	unprepare(process);

fail:
	process->launch = NULL; /* its poll was not opened */
	gate_close(&launch->gate);
	free(launch);
	process_remove_files(process);
	return false;
}

bool process_resume(struct process *process, struct error *err)
{
	if (process->state == PROCESS_EXITED || process->stopping) {
		return error_set(err, ERROR_BUILD_NOT_RUNNING, "build %s %s", process->key,
			process->state == PROCESS_EXITED ? "has exited" : "is being stopped");
	}
	process->hold = false;
	if (process->state != PROCESS_HELD || process->went) {
		return true;
	}
	/* A guard that has died meanwhile is replaced before anything runs. */
	if (!process->leaves && !guard_ensure(&process->table->guard, err)) {
		return false;
	}
	process->went = true;
	return gate_go(&process->launch->gate, err);
}
