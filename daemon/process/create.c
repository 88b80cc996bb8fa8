#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process/record.h"
#include "protocol/clock.h"
#include "protocol/limits.h"

/* Sets build_id and key, the client's or the next free number. */
static bool name(struct process *process, json_t *build_id, struct error *err)
{
	struct processes *table = process->table;
	if (build_id == NULL) {
		do {
			snprintf(
				process->key, sizeof(process->key), "%llu", (unsigned long long)table->next_id++);
		} while (processes_find_key(table, process->key) != NULL);
		process->build_id = json_string(process->key);
		return process->build_id != NULL ||
			   error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for a build_id");
	}
	if (!processes_key(build_id, process->key)) {
		return error_set(err, ERROR_BAD_PARAMS,
			"build_id must be an integer or a string of 1 to %d bytes", LIMIT_ID_BYTES);
	}
	const struct process *other = processes_find_key(table, process->key);
	if (other != NULL && other->state != PROCESS_EXITED) {
		return error_set(err, ERROR_BUILD_EXISTS, "build %s is %s as process %d", other->key,
			process_state_name(other->state), (int)other->pid);
	}
	process->build_id = json_incref(build_id);
	return true;
}

static void free_argv(char **argv, size_t argc)
{
	for (size_t i = 0; i < argc; i++) {
		free(argv[i]);
	}
	free(argv);
}

bool process_set_argv(struct process *process, const char *const *argv)
{
	size_t count = 0, done = 0;
	while (argv[count] != NULL) {
		count++;
	}
	char **copy = calloc(count + 1, sizeof(*copy));
	while (copy != NULL && done < count && (copy[done] = strdup(argv[done])) != NULL) {
		done++;
	}
	if (copy == NULL || done < count) {
		free_argv(copy, copy == NULL ? 0 : done);
		return false;
	}
	free_argv(process->argv, process->argc);
	process->argv = copy;
	process->argc = count;
	return true;
}

static bool copy_cwd(struct process *process, const char *cwd, struct error *err)
{
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

struct process *process_create(struct processes *processes, json_t *build_id,
	const char *const *argv, const char *cwd, struct error *err)
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
	process->ended.fd = process->outputs[0].fd = process->outputs[1].fd = -1;
	process->input.fd = process->terminal_fd = -1;
	ring_init(&process->rings[0], LIMIT_OUTPUT_BYTES);
	ring_init(&process->rings[1], LIMIT_OUTPUT_BYTES);
	if (!name(process, build_id, err) || !copy_cwd(process, cwd, err)) {
		process_free(process);
		return NULL;
	}
	if (!process_set_argv(process, argv)) {
		error_set(err, ERROR_LIMIT_EXCEEDED, "no memory for the arguments");
		process_free(process);
		return NULL;
	}
	uv_timer_init(processes->loop, &process->timer);
	process->timer.data = process;
	process->handles++;
	process->started_unix_us = clock_unix_us();
	append(process);
	return process;
}

static bool check_argv(const char *const *argv, struct error *err)
{
	size_t count = 0;
	while (argv[count] != NULL) {
		count++;
	}
	if (count == 0 || argv[0][0] == '\0') {
		return error_set(err, ERROR_BAD_PARAMS, "argv needs a program as its first element");
	}
	return count <= LIMIT_ARGUMENTS ||
		   error_set(err, ERROR_BAD_PARAMS, "argv has %zu elements, at most %d are taken", count,
			   LIMIT_ARGUMENTS);
}

static bool check_cwd(const char *cwd, struct error *err)
{
	return cwd == NULL || cwd[0] == '/' ||
		   error_set(err, ERROR_BAD_PARAMS, "cwd must be an absolute path, not %s", cwd);
}

/* What is left has nobody who reads its pipe or its terminal: it would end at its next word. */
static bool check_leave(const struct process_options *options, struct error *err)
{
	bool has_reader = options->stdio == PROCESS_STDIO_PIPE || options->stdio == PROCESS_STDIO_PTY;
	if (!options->leave || !has_reader) {
		return true;
	}
	error_set(err, ERROR_BAD_PARAMS,
		"on_daemon_exit leave cannot be had with stdio %s: the daemon's end of it goes with the "
		"daemon",
		options->stdio == PROCESS_STDIO_PIPE ? "pipe" : "pty");
	error_detail(err, "leave_needs_null_or_file");
	return error_hint(err, "ask for stdio file or null as well");
}

struct process *processes_launch(struct processes *processes, const struct process_options *options,
	struct process_watch *watch, struct error *err)
{
	if (!check_argv(options->argv, err) || !check_cwd(options->cwd, err) ||
		!check_leave(options, err)) {
		return NULL;
	}
	struct process *process =
		process_create(processes, options->build_id, options->argv, options->cwd, err);
	if (process == NULL) {
		return NULL;
	}
	process->hold = options->hold;
	process->leaves = options->leave;
	process->stdio = options->stdio;
	if (!process_start(process, options, err)) {
		process_forget(process);
		return NULL;
	}
	if (watch != NULL) {
		process_watch(process, watch);
	}
	return process;
}
