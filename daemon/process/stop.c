#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "process/child.h"
#include "process/record.h"

#define DRAIN_MS 500
#define LOOK_FIRST_MS                                                                              \
	10 /* between two looks for members of a group, or for descendants, doubled up to the most */
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

static uint64_t longer(uint64_t look_ms)
{
	return look_ms * 2 < LOOK_MOST_MS ? look_ms * 2 : LOOK_MOST_MS;
}

/* A stop ends the whole group: members that outlive the leader keep the rest of the grace. */
static bool must_wait_for_group(struct process *process)
{
	if (!process->stopping || process->killed || !child_group_has_members(process->pid)) {
		return false;
	}
	uint64_t look_at_ms = uv_now(process->table->loop) + process->look_ms;
	process->look_ms = longer(process->look_ms);
	wait_until(process, look_at_ms < process->kill_at_ms ? look_at_ms : process->kill_at_ms);
	return true;
}

/* Those that leave the group are known only as long as their parents live. */
static void look_for_descendants(struct process *process)
{
	uint64_t now = uv_now(process->table->loop);
	if (process->counts_survivors && !process->has_ended && now >= process->look_at_ms) {
		descendants_look(&process->descendants, process->pid);
		process->look_at_ms = now + process->kin_look_ms;
		process->kin_look_ms = longer(process->kin_look_ms);
	}
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
	/* Members of the group that were killed may still be dying. */
	descendants_keep_living(&process->descendants, process->pid);
	process_remember(process);
}

/* The kernel tells only its parent how it ended. */
static void end_adopted(struct process *process)
{
	process->exit = (struct process_exit){.exit_code = -1, .was_observed = true};
	process_remember(process);
}

/* While it lives: the next look, or the kill. */
static void wait_for_end(struct process *process)
{
	if (process->launch != NULL && process->launch->failed) {
		kill(process->pid, SIGKILL);
		return;
	}
	if (!process->stopping || process->killed) {
		return;
	}
	bool looks = process->counts_survivors && process->look_at_ms < process->kill_at_ms;
	wait_until(process, looks ? process->look_at_ms : process->kill_at_ms);
}

void process_advance(struct process *process)
{
	if (process->state == PROCESS_EXITED || process->forgotten) {
		return;
	}
	uv_update_time(process->table->loop);
	if (process->adopted) {
		end_adopted(process);
		return;
	}
	look_for_descendants(process);
	if (process->stopping && !process->killed &&
		uv_now(process->table->loop) >= process->kill_at_ms) {
		send_signal(process, SIGKILL, NULL);
		process->killed = true;
	}
	if (!process->has_ended) {
		wait_for_end(process);
		return;
	}
	bool is_undone = process->cancelled || process->state == PROCESS_STARTING ||
					 (process->launch != NULL && !process->was_held);
	if (!is_undone && (must_wait_for_group(process) || must_wait_for_output(process))) {
		return;
	}
	if (process->guarded) {
		/* Before the number of the group can be somebody else's. */
		guard_remove(&process->table->guard, process->pid);
		process->guarded = false;
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

static bool stop(struct process *process, int signal, uint64_t grace_ms, bool counts_survivors,
	struct error *err)
{
	if (process->state == PROCESS_EXITED) {
		return true;
	}
	if (signal < 1 || signal > SIGRTMAX) {
		return error_set(err, ERROR_BAD_PARAMS, "there is no signal %d", signal);
	}
	assert(!process->adopted);
	bool at_gate = !process->went && process->state != PROCESS_RUNNING;
	if (!process->stopping) {
		process->kin_look_ms = LOOK_FIRST_MS;
		process->counts_survivors = counts_survivors && !at_gate;
	}
	look_for_descendants(process);
	if (at_gate && process->launch != NULL && !process->launch->failed) {
		process_close_launch(process); /* the gate exits */
	} else if (!at_gate && (!process->stopping || process->stop_signal != signal)) {
		if (!send_signal(process, signal, err)) {
			process->counts_survivors = process->counts_survivors && process->stopping;
			return false;
		}
		send_signal(process, SIGCONT, NULL); /* what is stopped sees signals only when it goes on */
	}
	process->kill_at_ms = deadline(process, grace_ms);
	process->stop_signal = signal;
	process->stopping = true;
	process->look_ms = LOOK_FIRST_MS;
	if (process->has_ended) {
		wait_until(process, 0);
	} else if (process->launch != NULL && process->launch->failed) {
		wait_until(process, process->kill_at_ms);
	} else {
		wait_for_end(process);
	}
	return true;
}

bool process_stop(struct process *process, int signal, uint64_t grace_ms, struct error *err)
{
	return stop(process, signal, grace_ms, true, err);
}

/* Nobody asks who survives the daemon's end. */
void processes_stop_all(struct processes *processes, int signal, uint64_t grace_ms)
{
	for (struct process *process = processes->first; process != NULL; process = process->next) {
		if (process_must_end(process)) {
			stop(process, signal, grace_ms, false, NULL);
		}
	}
}

void process_cancel(struct process *process)
{
	process->cancelled = !process->went && process->state != PROCESS_RUNNING;
	process_stop(process, SIGKILL, 0, NULL);
}

size_t process_survivors(struct process *process, pid_t pids[LIMIT_SURVIVORS])
{
	if (process->state != PROCESS_EXITED) {
		return 0;
	}
	descendants_keep_living(&process->descendants, 0);
	size_t count = process->descendants.list.len;
	for (size_t i = 0; i < count && i < LIMIT_SURVIVORS; i++) {
		pids[i] = process->descendants.list.items[i].pid;
	}
	return count;
}

bool process_signal(struct process *process, int signal, struct error *err)
{
	assert(!process->adopted);
	if (process->state != PROCESS_RUNNING || process->has_ended) {
		bool is_held = process->state != PROCESS_EXITED && !process->has_ended;
		error_set(err, ERROR_BUILD_NOT_RUNNING, "build %s %s", process->key,
			is_held ? "does not run yet" : "has exited");
		return error_hint(err, "%s",
			is_held ? "let it run with ResumeProcess first, or end it with StopProcess"
					: "launch it again");
	}
	return pidfd_send(process->ended.fd, signal) ||
		   error_errno_as(err, ERROR_NOT_PERMITTED, errno, "cannot signal process %d of build %s",
			   (int)process->pid, process->key);
}
