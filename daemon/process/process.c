#include "process/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/output.h"
#include "process/record.h"
#include "protocol/limits.h"

/* A guard is new and knows nobody. */
static void tell_guard(struct guard *guard)
{
	const struct processes *processes = guard->context;
	for (const struct process *process = processes->first; process != NULL;
		 process = process->next) {
		if (process->guarded) {
			guard_list(guard, process->pid);
		}
	}
	for (size_t i = 0; i < processes->helper_count; i++) {
		guard_list(guard, processes->helpers[i]);
	}
}

struct processes *processes_create(uv_loop_t *loop, const char *gate_path, struct error *err)
{
	struct processes *processes = calloc(1, sizeof(*processes));
	char *bytes = malloc(OUTPUT_READ_BYTES);
	if (processes == NULL || bytes == NULL) {
		free(processes);
		free(bytes);
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the table of processes");
		return NULL;
	}
	processes->loop = loop;
	processes->gate_path = gate_path;
	processes->bytes = bytes;
	processes->umask_bits = processes->nofile_soft = processes->nofile_hard = -1;
	processes->data_fd = -1;
	processes->next_id = 1;
	if (!guard_init(&processes->guard, loop, gate_path, err)) {
		free(processes);
		free(bytes);
		return NULL;
	}
	processes->guard.tell_all = tell_guard;
	processes->guard.context = processes;
	uv_timer_init(loop, &processes->forgetting);
	uv_unref((uv_handle_t *)&processes->forgetting);
	processes->forgetting.data = processes;
	return processes;
}

void process_free(struct process *process)
{
	json_decref(process->build_id);
	for (size_t i = 0; i < process->argc; i++) {
		free(process->argv[i]);
	}
	free(process->argv);
	free(process->cwd);
	free(process->launch_error);
	ring_finish(&process->rings[0]);
	ring_finish(&process->rings[1]);
	descendants_finish(&process->descendants);
	free(process);
}

void process_handle_closed(struct process *process)
{
	process->handles--;
	if (process->handles == 0 && process->forgotten) {
		process_free(process);
	}
}

static void on_timer_closed(uv_handle_t *handle)
{
	process_handle_closed(handle->data);
}

void process_close_handles(struct process *process)
{
	process_close_launch(process);
	pidfd_watch_close(&process->ended);
	output_close(&process->outputs[0]);
	output_close(&process->outputs[1]);
	input_close(&process->input);
	process_release_terminal(process);
	uv_handle_t *timer = (uv_handle_t *)&process->timer;
	if (!uv_is_closing(timer)) {
		uv_close(timer, on_timer_closed);
	}
}

void process_unlink(struct process *process)
{
	struct processes *table = process->table;
	struct process **before = process->previous != NULL ? &process->previous->next : &table->first;
	struct process **behind = process->next != NULL ? &process->next->previous : &table->last;
	*before = process->next;
	*behind = process->previous;
	process->next = process->previous = NULL;
	*(process->state == PROCESS_EXITED ? &table->exited : &table->alive) -= 1;
}

void process_forget(struct process *process)
{
	process_unlink(process);
	process->forgotten = true;
	process_end_watching(process);
	process_close_handles(process);
	if (process->handles == 0) {
		process_free(process);
	}
}

bool process_must_end(const struct process *process)
{
	bool is_left = process->leaves && process->went;
	return process->state != PROCESS_EXITED && !process->adopted && !is_left;
}

static void on_table_closed(uv_handle_t *handle)
{
	struct processes *processes = handle->data;
	free(processes->bytes);
	free(processes);
}

void processes_destroy(struct processes *processes)
{
	if (processes == NULL) {
		return;
	}
	while (processes->first != NULL) {
		struct process *process = processes->first;
		if (process_must_end(process)) {
			kill(-process->pid, SIGKILL);
		}
		process_forget(process);
	}
	guard_finish(&processes->guard);
	uv_close((uv_handle_t *)&processes->forgetting, on_table_closed);
}

void processes_set_nofile(struct processes *processes, long soft, long hard)
{
	processes->nofile_soft = soft;
	processes->nofile_hard = hard;
}

void processes_set_umask(struct processes *processes, long bits)
{
	processes->umask_bits = bits;
}

void processes_set_data_dir(struct processes *processes, int data_fd, const char *path)
{
	processes->data_fd = data_fd;
	processes->data_dir = path;
}

bool processes_start_guard(struct processes *processes, struct error *err)
{
	return guard_ensure(&processes->guard, err);
}

bool processes_key(const json_t *build_id, char key[LIMIT_ID_BYTES + 1])
{
	if (json_is_integer(build_id)) {
		snprintf(key, LIMIT_ID_BYTES + 1, "%lld", (long long)json_integer_value(build_id));
		return true;
	}
	size_t len = json_string_length(build_id);
	if (len == 0 || len > LIMIT_ID_BYTES || strlen(json_string_value(build_id)) != len) {
		return false;
	}
	memcpy(key, json_string_value(build_id), len + 1);
	return true;
}

struct process *processes_find_key(struct processes *processes, const char *key)
{
	struct process *process = processes->last;
	while (process != NULL && strcmp(process->key, key) != 0) {
		process = process->previous;
	}
	return process;
}

struct process *processes_find(
	struct processes *processes, const json_t *build_id, struct error *err)
{
	char key[LIMIT_ID_BYTES + 1];
	if (!processes_key(build_id, key)) {
		error_set(err, ERROR_BUILD_NOT_FOUND, "there is no build of such a name");
		return NULL;
	}
	struct process *process = processes_find_key(processes, key);
	if (process == NULL) {
		error_set(err, ERROR_BUILD_NOT_FOUND, "there is no build %s", key);
	}
	return process;
}

struct process *processes_find_pid(struct processes *processes, pid_t pid)
{
	struct process *process = processes->last;
	while (process != NULL && (process->pid != pid || process->state == PROCESS_EXITED)) {
		process = process->previous;
	}
	return process;
}

struct process *processes_next(struct processes *processes, struct process *after)
{
	return after != NULL ? after->next : processes->first;
}

size_t processes_alive(const struct processes *processes)
{
	return processes->alive;
}

size_t processes_to_end(const struct processes *processes)
{
	size_t count = 0;
	for (const struct process *process = processes->first; process != NULL;
		 process = process->next) {
		count += process_must_end(process) ? 1 : 0;
	}
	return count;
}

enum process_state process_state(const struct process *process)
{
	return process->state;
}

const char *process_state_name(enum process_state state)
{
	static const char *const names[] = {"starting", "held", "running", "exited"};
	return names[state];
}

bool process_is_adopted(const struct process *process)
{
	return process->adopted;
}

enum process_stdio process_stdio(const struct process *process)
{
	return process->stdio;
}

const json_t *process_build_id(const struct process *process)
{
	return process->build_id;
}

const char *process_key(const struct process *process)
{
	return process->key;
}

pid_t process_pid(const struct process *process)
{
	return process->pid;
}

uint64_t process_started_unix_us(const struct process *process)
{
	return process->started_unix_us;
}

const char *process_cwd(const struct process *process)
{
	return process->cwd;
}

const char *const *process_argv(const struct process *process, size_t *count)
{
	*count = process->argc;
	return (const char *const *)process->argv;
}

const struct process_exit *process_exit(const struct process *process)
{
	return process->state == PROCESS_EXITED ? &process->exit : NULL;
}

const struct error *process_launch_error(const struct process *process)
{
	return process->launch_error;
}
