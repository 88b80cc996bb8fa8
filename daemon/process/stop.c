#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "process/child.h"
#include "process/record.h"

#define DRAIN_MS      500
#define LOOK_FIRST_MS 10 /* between two looks whether a group has members, doubled up to the most */
#define LOOK_MOST_MS  160
#define REAP_AGAIN_MS 20
#define REST_BYTES    (1024 * 1024) /* of output that is still read at the very end */

static void on_timer(uv_timer_t *timer)
{
	process_advance(timer->data);
}

static void wait_until(struct process *process, uint64_t at_ms)
{
	uint64_t now = uv_now(process->table->loop);
	uv_timer_start(&process->timer, on_timer, at_ms > now ? at_ms - now : 0, 0);
}

/* To the group; its number is ours as long as the leader is not reaped. Also to a leader that went to another group. */
static bool send_signal(const struct process *process, int signal, struct error *err)
{
	int status = kill(-process->pid, signal);
	int errno_value = errno;
	if (getpgid(process->pid) != process->pid) {
		status = kill(process->pid, signal);
		errno_value = errno;
	}
	return status == 0 ||
		   error_errno_as(err, ERROR_NOT_PERMITTED, errno_value,
			   "cannot signal process %d of build %s", (int)process->pid, process->key);
}

/* A stop ends the whole group: members that outlive the leader keep the rest of the grace. */
static bool must_wait_for_group(struct process *process)
{
	if (!process->stopping || process->killed || !child_group_has_members(process->pid)) {
		return false;
	}
	uint64_t look_at_ms = uv_now(process->table->loop) + process->look_ms;
	process->look_ms = process->look_ms * 2 < LOOK_MOST_MS ? process->look_ms * 2 : LOOK_MOST_MS;
	wait_until(process, look_at_ms < process->kill_at_ms ? look_at_ms : process->kill_at_ms);
	return true;
}

/* Output that a descendant holds open is given a moment, because its bytes may still be on their way. */
static bool must_wait_for_output(struct process *process)
{
	uint64_t now = uv_now(process->table->loop);
	if (process->outputs[0].fd < 0 && process->outputs[1].fd < 0) {
		return false;
	}
	if (process->drain_until_ms == 0) {
		process->drain_until_ms = now + DRAIN_MS;
	}
	if (now >= process->drain_until_ms) {
		return false;
	}
	wait_until(process, process->drain_until_ms);
	return true;
}

void process_expect_end(struct process *process, uint64_t within_ms)
{
	if (within_ms == 0) {
		kill(process->pid, SIGKILL);
	} else {
		wait_until(process, uv_now(process->table->loop) + within_ms);
	}
}

static void end_failed(struct process *process)
{
	if (process->launch != NULL) {
		process_fail(process, &process->launch->err);
		return;
	}
	struct error err = {0};
	error_set(&err, ERROR_CANCELLED, "build %s was stopped before it began", process->key);
	process_fail(process, &err);
}

static void end_exited(struct process *process)
{
	if (process->launch != NULL && (process->launch_error = malloc(sizeof(struct error))) != NULL) {
		*process->launch_error = process->launch->err;
	}
	output_read_rest(&process->outputs[0], REST_BYTES);
	output_read_rest(&process->outputs[1], REST_BYTES);
	process_remember(process);
}

void process_advance(struct process *process)
{
	if (process->state == PROCESS_EXITED || process->forgotten) {
		return;
	}
	uv_update_time(process->table->loop);
	if (process->stopping && !process->killed &&
		uv_now(process->table->loop) >= process->kill_at_ms) {
		send_signal(process, SIGKILL, NULL);
		process->killed = true;
	}
	if (!process->has_ended) {
		if (process->launch != NULL && process->launch->failed) {
			kill(process->pid, SIGKILL);
		}
		return;
	}
	bool is_undone = process->cancelled || process->state == PROCESS_STARTING ||
					 (process->launch != NULL && !process->was_held);
	if (!is_undone && (must_wait_for_group(process) || must_wait_for_output(process))) {
		return;
	}
	if (child_reap(process->ended.fd, &process->exit) == CHILD_NOT_YET) {
		wait_until(process, uv_now(process->table->loop) + REAP_AGAIN_MS);
		return;
	}
	if (is_undone) {
		end_failed(process);
	} else {
		end_exited(process);
	}
}

static uint64_t deadline(struct process *process, uint64_t grace_ms)
{
	uv_update_time(process->table->loop);
	uint64_t now = uv_now(process->table->loop);
	uint64_t at_ms = grace_ms < UINT64_MAX - now ? now + grace_ms : UINT64_MAX;
	return process->stopping && process->kill_at_ms < at_ms ? process->kill_at_ms : at_ms;
}

bool process_stop(struct process *process, int signal, uint64_t grace_ms, struct error *err)
{
	if (process->state == PROCESS_EXITED) {
		return true;
	}
	if (signal < 1 || signal > SIGRTMAX) {
		return error_set(err, ERROR_BAD_PARAMS, "there is no signal %d", signal);
	}
	bool at_gate = !process->went && process->state != PROCESS_RUNNING;
	if (at_gate && process->launch != NULL && !process->launch->failed) {
		process_close_launch(process); /* the gate exits */
	} else if (!at_gate && (!process->stopping || process->stop_signal != signal)) {
		if (!send_signal(process, signal, err)) {
			return false;
		}
		send_signal(process, SIGCONT, NULL); /* what is stopped sees signals only when it goes on */
	}
	process->kill_at_ms = deadline(process, grace_ms);
	process->stop_signal = signal;
	process->stopping = true;
	process->look_ms = LOOK_FIRST_MS;
	wait_until(process, process->has_ended ? 0 : process->kill_at_ms);
	return true;
}

void process_cancel(struct process *process)
{
	process->cancelled = !process->went && process->state != PROCESS_RUNNING;
	process_stop(process, SIGKILL, 0, NULL);
}

void processes_stop_all(struct processes *processes, int signal, uint64_t grace_ms)
{
	for (struct process *process = processes->first; process != NULL; process = process->next) {
		process_stop(process, signal, grace_ms, NULL);
	}
}
