#ifndef COMMANDS_BUILD_H
#define COMMANDS_BUILD_H

#include <stdbool.h>

#include <jansson.h>

#include "commands/daemon.h"
#include "gpu/gpu.h"
#include "server/request.h"

/*
 * What the daemon keeps about a launched program beside the process itself: it publishes the program's events, and it knows its captures, also after
 * the exit. As many are kept as the table of processes remembers.
 */
struct build;

/* Before the launch; NULL when memory is out. */
struct build *build_create(struct daemon *daemon);
/* Of one that was not begun. */
void build_destroy(struct build *build);
/* Directly after processes_launch, whose own watch thus comes first. Takes build; it is in daemon->builds until the process is
 * long gone, or never ran. */
void build_begin(struct build *build, struct process *process);

/* Before build_begin: the program is armed so, and may ask for itself or not. Takes the hold. */
void build_take_gpu(struct build *build, struct gpu_program *program, bool lets_program_ask);
/* NULL: it is not armed, or has ended. Borrowed. */
struct gpu_program *build_gpu(const struct daemon *daemon, const struct process *process);

/* Remembers that the capture is of this process. */
void build_add_capture(
	struct daemon *daemon, const struct process *process, const char *capture_id);

/* The build that a request's build_id names. NULL: the request was answered. */
struct process *build_find(struct daemon *daemon, struct request *request, const json_t *params);
/* The same, for what only its parent may do: an adopted one is not_permitted. */
struct process *build_find_owned(
	struct daemon *daemon, struct request *request, const json_t *params);

/* Adds stdout_path and stderr_path, if it has them. */
void build_add_paths(json_t *object, const struct process *process);

/* The record of ListProcesses and GetProcess. Owned; NULL when memory is out. */
json_t *build_record(const struct daemon *daemon, const struct process *process);

/* After the loop has ended. */
void builds_finish(struct daemon *daemon);

#endif
