#include <stdlib.h>
#include <string.h>

#include "process/record.h"

static void on_ended(struct pidfd_watch *watch)
{
	struct process *process = watch->context;
	process->has_ended = true;
	process_advance(process);
}

static void on_closed(struct pidfd_watch *watch)
{
	process_handle_closed(watch->context);
}

static bool watch_end(struct process *process, struct error *err)
{
	process->ended.ended = on_ended;
	process->ended.closed = on_closed;
	process->ended.context = process;
	if (!pidfd_watch_open(&process->ended, process->table->loop, process->pid, err)) {
		return false;
	}
	process->handles++;
	return !pidfd_has_ended(process->ended.fd) ||
		   error_set(err, ERROR_PROCESS_NOT_FOUND, "process %d has just ended", (int)process->pid);
}

struct process *processes_adopt(
	struct processes *processes, const struct process_adoption *adoption, struct error *err)
{
	const struct process *other = processes_find_pid(processes, adoption->pid);
	if (other != NULL) {
		error_set(err, ERROR_BUILD_EXISTS, "process %d is the build %s already", (int)adoption->pid,
			other->key);
		error_hint(err, "use that build_id");
		return NULL;
	}
	struct process *process =
		process_create(processes, adoption->build_id, adoption->argv, adoption->cwd, err);
	if (process == NULL) {
		return NULL;
	}
	process->adopted = true;
	process->stdio = PROCESS_STDIO_NULL;
	process->pid = adoption->pid;
	process->state = adoption->is_held ? PROCESS_HELD : PROCESS_RUNNING;
	if (!watch_end(process, err)) {
		process_forget(process);
		return NULL;
	}
	return process;
}

void process_left_gate(struct process *process, const char *const *argv, const char *cwd)
{
	if (process->state != PROCESS_HELD) {
		return;
	}
	char *copy = argv != NULL ? strdup(cwd) : NULL;
	if (copy != NULL && process_set_argv(process, argv)) {
		free(process->cwd);
		process->cwd = copy;
	} else {
		free(copy); /* memory is out: it keeps the gate's own */
	}
	process->state = PROCESS_RUNNING;
	process_tell_running(process);
}
