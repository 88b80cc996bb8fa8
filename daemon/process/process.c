#include "process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/output.h"
#include "process/record.h"
#include "protocol/limits.h"

static void on_forgetting(uv_timer_t *timer);

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
	processes->next_id = 1;
	uv_timer_init(loop, &processes->forgetting);
	uv_unref((uv_handle_t *)&processes->forgetting);
	processes->forgetting.data = processes;
	return processes;
}

static void free_process(struct process *process)
{
	json_decref(process->build_id);
	for (size_t i = 0; i < process->argc; i++) {
		free(process->argv[i]);
	}
	free(process->argv);
	free(process->cwd);
	free(process->launch_error);
	free(process);
}

void process_handle_closed(struct process *process)
{
	process->handles--;
	if (process->handles == 0 && process->forgotten) {
		free_process(process);
	}
}

static void on_timer_closed(uv_handle_t *handle)
{
	process_handle_closed(handle->data);
}

static void close_handles(struct process *process)
{
	process_close_launch(process);
	pidfd_watch_close(&process->ended);
	output_close(&process->outputs[0]);
	output_close(&process->outputs[1]);
	uv_handle_t *timer = (uv_handle_t *)&process->timer;
	if (!uv_is_closing(timer)) {
		uv_close(timer, on_timer_closed);
	}
}

static void unlink_process(struct process *process)
{
	struct processes *table = process->table;
	struct process **before = process->previous != NULL ? &process->previous->next : &table->first;
	struct process **behind = process->next != NULL ? &process->next->previous : &table->last;
	*before = process->next;
	*behind = process->previous;
	process->next = process->previous = NULL;
	*(process->state == PROCESS_EXITED ? &table->exited : &table->alive) -= 1;
}

/* Its memory goes with its last handle. */
static void forget(struct process *process)
{
	unlink_process(process);
	process->forgotten = true;
	process_end_watching(process);
	close_handles(process);
	if (process->handles == 0) {
		free_process(process);
	}
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
		if (process->state != PROCESS_EXITED) {
			kill(-process->pid, SIGKILL);
		}
		forget(process);
	}
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

static struct process *find_key(struct processes *processes, const char *key)
{
	struct process *process = processes->last;
	while (process != NULL && strcmp(process->key, key) != 0) {
		process = process->previous;
	}
	return process;
}

/* Sets build_id and key, the client's or the next free number. */
static bool name(struct process *process, json_t *build_id, struct error *err)
{
	struct processes *table = process->table;
	if (build_id == NULL) {
		do {
			snprintf(
				process->key, sizeof(process->key), "%llu", (unsigned long long)table->next_id++);
		} while (find_key(table, process->key) != NULL);
		process->build_id = json_string(process->key);
		return process->build_id != NULL ||
			   error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a build_id");
	}
	if (!processes_key(build_id, process->key)) {
		return error_set(err, ERROR_BAD_PARAMS,
			"build_id must be an integer or a string of 1 to %d bytes", LIMIT_ID_BYTES);
	}
	const struct process *other = find_key(table, process->key);
	if (other != NULL && other->state != PROCESS_EXITED) {
		return error_set(err, ERROR_BUILD_EXISTS, "build %s is %s as process %d", other->key,
			process_state_name(other->state), (int)other->pid);
	}
	process->build_id = json_incref(build_id);
	return true;
}

static bool copy_argv(struct process *process, const char *const *argv, struct error *err)
{
	size_t count = 0;
	while (argv[count] != NULL) {
		count++;
	}
	if (count == 0 || argv[0][0] == '\0') {
		return error_set(err, ERROR_BAD_PARAMS, "argv needs a program as its first element");
	}
	if (count > LIMIT_ARGUMENTS) {
		return error_set(err, ERROR_BAD_PARAMS, "argv has %zu elements, at most %d are taken",
			count, LIMIT_ARGUMENTS);
	}
	process->argv = calloc(count + 1, sizeof(*process->argv));
	while (process->argv != NULL && process->argc < count) {
		process->argv[process->argc] = strdup(argv[process->argc]);
		if (process->argv[process->argc] == NULL) {
			break;
		}
		process->argc++;
	}
	return process->argc == count ||
		   error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for %zu arguments", count);
}

static bool copy_cwd(struct process *process, const char *cwd, struct error *err)
{
	if (cwd != NULL && cwd[0] != '/') {
		return error_set(err, ERROR_BAD_PARAMS, "cwd must be an absolute path, not %s", cwd);
	}
	process->cwd = cwd != NULL ? strdup(cwd) : getcwd(NULL, 0);
	if (process->cwd == NULL && errno != ENOMEM) {
		process->cwd = strdup(""); /* the daemon's own is gone or out of reach */
	}
	return process->cwd != NULL || error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for cwd");
}

static void append(struct process *process)
{
	struct processes *table = process->table;
	process->previous = table->last;
	*(table->last != NULL ? &table->last->next : &table->first) = process;
	table->last = process;
	table->alive++;
}

struct process *processes_launch(struct processes *processes, const struct process_options *options,
	struct process_watch *watch, struct error *err)
{
	if (processes->alive >= LIMIT_BUILDS) {
		error_set(
			err, ERROR_LIMIT_EXCEEDED, "%zu builds are alive, no more are taken", processes->alive);
		error_hint(err, "stop one with StopProcess, or wait for its end");
		return NULL;
	}
	struct process *process = calloc(1, sizeof(*process));
	if (process == NULL) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for another build");
		return NULL;
	}
	process->table = processes;
	process->hold = options->hold;
	process->ended.fd = process->outputs[0].fd = process->outputs[1].fd = -1;
	if (!name(process, options->build_id, err) || !copy_argv(process, options->argv, err) ||
		!copy_cwd(process, options->cwd, err)) {
		free_process(process);
		return NULL;
	}
	uv_timer_init(processes->loop, &process->timer);
	process->timer.data = process;
	process->handles++;
	append(process);
	if (!process_start(process, options, err)) {
		forget(process);
		return NULL;
	}
	process->started_unix_us = clock_unix_us();
	if (watch != NULL) {
		process_watch(process, watch);
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
	struct process *process = find_key(processes, key);
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
	uv_timer_start(&processes->forgetting, on_forgetting, wait_ms, 0);
}

static void on_forgetting(uv_timer_t *timer)
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
		forget(process);
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
	unlink_process(process);
	process_tell_failed(process, err);
	process->forgotten = true;
	close_handles(process); /* the timer's at least closes later, and frees it */
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
	close_handles(process);
	process_tell_exited(process);
	shorten_argv(process);
	process_unwatched(process);
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
