#include <stdlib.h>
#include <string.h>

#include "process/record.h"
#include "protocol/limits.h"

void process_remove_files(struct process *process)
{
	if (process->files[0] != '\0') {
		output_files_remove(process->table->data_fd, process->files);
	}
	process->files[0] = '\0';
}

/* The exited one nobody watches that ended first; NULL. */
static struct process *first_to_forget(const struct processes *processes)
{
	struct process *found = NULL;
	for (struct process *process = processes->first; process != NULL; process = process->next) {
		bool may_go =
			process->state == PROCESS_EXITED && process->watches == NULL && !process->telling;
		if (may_go && (found == NULL || process->forget_at_ms < found->forget_at_ms)) {
			found = process;
		}
	}
	return found;
}

static void arm_forgetting(struct processes *processes)
{
	const struct process *process = first_to_forget(processes);
	if (process == NULL) {
		uv_timer_stop(&processes->forgetting);
		return;
	}
	uv_update_time(processes->loop);
	uint64_t now = uv_now(processes->loop);
	uint64_t wait_ms = process->forget_at_ms > now ? process->forget_at_ms - now : 0;
	if (processes->exited > LIMIT_EXITED_BUILDS) {
		wait_ms = 0;
	}
	uv_timer_start(&processes->forgetting, processes_forget_due, wait_ms, 0);
}

void processes_forget_due(uv_timer_t *timer)
{
	struct processes *processes = timer->data;
	uint64_t now = uv_now(processes->loop);
	for (;;) {
		struct process *process = first_to_forget(processes);
		bool is_due = process != NULL &&
					  (process->forget_at_ms <= now || processes->exited > LIMIT_EXITED_BUILDS);
		if (!is_due) {
			break;
		}
		process_remove_files(process);
		process_forget(process);
	}
	arm_forgetting(processes);
}

void process_unwatched(struct process *process)
{
	if (process->state == PROCESS_EXITED) {
		arm_forgetting(process->table);
	}
}

void process_fail(struct process *process, const struct error *err)
{
	process_unlink(process);
	process_remove_files(process);
	process_tell_failed(process, err);
	process->forgotten = true;
	process_close_handles(process); /* the timer's at least closes later, and frees it */
}

/* A record shows so much of argv, and 256 of them are kept. */
static void shorten_argv(struct process *process)
{
	size_t shown = 0;
	size_t kept = 0;
	while (kept < process->argc && shown <= LIMIT_ARGV_SHOWN_BYTES) {
		size_t len = strlen(process->argv[kept]);
		if (len > LIMIT_ARGV_SHOWN_BYTES + 1) {
			process->argv[kept][LIMIT_ARGV_SHOWN_BYTES + 1] = '\0';
			char *shorter = realloc(process->argv[kept], LIMIT_ARGV_SHOWN_BYTES + 2);
			process->argv[kept] = shorter != NULL ? shorter : process->argv[kept];
		}
		shown += len + 1;
		kept++;
	}
	for (size_t i = kept; i < process->argc; i++) {
		free(process->argv[i]);
		process->argv[i] = NULL;
	}
	process->argc = kept;
}

void process_remember(struct process *process)
{
	struct processes *table = process->table;
	process->state = PROCESS_EXITED;
	process->forget_at_ms = uv_now(table->loop) + LIMIT_EXITED_BUILD_MS;
	table->alive--;
	table->exited++;
	process_close_handles(process);
	ring_shrink(&process->rings[0], LIMIT_OUTPUT_LAST_BYTES);
	ring_shrink(&process->rings[1], LIMIT_OUTPUT_LAST_BYTES);
	process_tell_exited(process);
	shorten_argv(process);
	process_unwatched(process);
}
