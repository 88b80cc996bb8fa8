#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <uv.h>

#include "protocol/error.h"
#include "protocol/limits.h"

/*
 * The programs that clients launched ("builds"): a table of them, each from its gate to its exit. Loop thread only. The process must
 * ignore SIGPIPE. Adopted ones are somebody else's children: they are seen, and never signalled.
 *
 * starting ──ready──► held ──process_resume──► running ──► exited
 *     └──────────────────┴───── failed (never ran; forgotten at once, its build_id is free again)
 *
 * A process is known by a pointer that stays valid until the table forgets it: a running or held one lives; an exited one is remembered
 * (LIMIT_EXITED_BUILDS, LIMIT_EXITED_BUILD_MS) but may go at any later turn of the loop, so nobody keeps the pointer beyond its exited callback,
 * unless it watches it.
 */
struct processes;
struct process;

enum process_state { PROCESS_STARTING, PROCESS_HELD, PROCESS_RUNNING, PROCESS_EXITED };

/* Pipes for all three; /dev/null; /dev/null and two files; a terminal of its own, whose output counts as stdout. */
enum process_stdio {
	PROCESS_STDIO_PIPE,
	PROCESS_STDIO_NULL,
	PROCESS_STDIO_FILE,
	PROCESS_STDIO_PTY
};

enum process_stream { PROCESS_STDOUT = 1, PROCESS_STDERR = 2 };

/* Told to everyone who watches a process, in the order of watching. Any member may be NULL. All on the loop thread. */
struct process_watch_ops {
	/* The gate waits: the pid exists, nothing of the target ran. Start measuring here. */
	void (*ready)(void *context, struct process *process);
	/* The target runs (its exec succeeded). */
	void (*running)(void *context, struct process *process);
	/* It never ran, and nobody was told that it is held. The process is gone after this call. */
	void (*failed)(void *context, struct process *process, const struct error *err);
	/* Bytes of a stream, in order, offset counts from the stream's first byte. bytes is borrowed for the call. */
	void (*output)(void *context, struct process *process, enum process_stream stream,
		uint64_t offset, const char *bytes, size_t len);
	/* It has ended and its output was read (at most 500 ms are waited for output that others hold open). A held one may never have run. */
	void (*exited)(void *context, struct process *process);
};

/* Embedded in the watcher. Zero-initialise; ops and context are set by the watcher. */
struct process_watch {
	const struct process_watch_ops *ops;
	void *context;
	struct process *process; /* NULL: not watching (also after failed and exited) */
	struct process_watch *next;
};

struct process_options {
	json_t *build_id;        /* string or integer, or NULL: one is made; borrowed */
	const char *const *argv; /* NULL-terminated; borrowed, like all below */
	const char *cwd;         /* NULL: the daemon's */
	/* Pairs "NAME=value", or "NAME" to unset; NULL-terminated, may be NULL. */
	const char *const *env;
	bool
		env_exact; /* nothing else; otherwise on top of the daemon's own environment less its private variables */
	enum process_stdio stdio;
	bool
		leave; /* it outlives the daemon, however that ends; only without descriptors of the daemon's (null, file). Otherwise its group dies with it */
	pid_t profiler_pid;
	bool
		hold; /* stay held when ready; otherwise it is resumed as soon as the ready callbacks have run */
};

/* How a process ended, for records and events. */
struct process_exit {
	bool
		was_observed; /* an adopted one's: nothing else is known, the kernel tells its parent alone */
	bool was_signalled;
	int exit_code; /* when not signalled */
	int signal;
	bool core_dumped;
	uint64_t user_us, system_us, max_rss_bytes;
};

/* gate_path borrowed for the table's life. */
struct processes *processes_create(uv_loop_t *loop, const char *gate_path, struct error *err);
/* All must have exited; what has not is killed, except those that are left or adopted, and nobody is told. The memory goes with the loop's next turn. NULL is fine. */
void processes_destroy(struct processes *processes);
/* What programs get back although the daemon changed it for itself: the limits of open files, the umask. -1: as the daemon. */
void processes_set_nofile(struct processes *processes, long soft, long hard);
void processes_set_umask(struct processes *processes, long bits);
/* Where output files go (process/output_files.h), both borrowed for the table's life. Without it stdio file is refused. */
void processes_set_data_dir(struct processes *processes, int data_fd, const char *path);
/* Starts what kills the groups when the daemon is gone (process/guard.h); otherwise the first launch does. Errors: launch_failed. */
bool processes_start_guard(struct processes *processes, struct error *err);

/*
 * Starts the gate. watch (may be NULL) watches from the beginning, so it misses nothing; callbacks come from the loop, never from within this call.
 * Errors: build_exists, limit_exceeded, launch_failed (the gate itself, the guard), bad_params (argv; leave with pipe or pty), disk_full and io (files).
 */
struct process *processes_launch(struct processes *processes, const struct process_options *options,
	struct process_watch *watch, struct error *err);

struct process_adoption {
	json_t *build_id; /* as of process_options */
	pid_t pid;
	const char *const *argv; /* NULL-terminated, borrowed, may be empty */
	const char *cwd;         /* "" when it is not known */
	bool is_held;            /* it waits behind a gate: process_left_gate will be called */
};

/*
 * Takes a process into the table that is not our child. Whether it may be, the caller knows.
 * Errors: build_exists (also: it is a build already), limit_exceeded, process_not_found.
 */
struct process *processes_adopt(
	struct processes *processes, const struct process_adoption *adoption, struct error *err);
/* An adopted one that was held runs now, as that program (may be NULL: as before). Told by running. */
void process_left_gate(struct process *process, const char *const *argv, const char *cwd);

/* The build_id as a string, as process_key tells it; false when it can be none. Pure. */
bool processes_key(const json_t *build_id, char key[LIMIT_ID_BYTES + 1]);
/* By the contract's rule: 7 and "7" are the same; the newest of that name. NULL: build_not_found. */
struct process *processes_find(
	struct processes *processes, const json_t *build_id, struct error *err);
/* One that lives and has this pid; NULL. */
struct process *processes_find_pid(struct processes *processes, pid_t pid);
/* Oldest first: NULL begins, NULL ends. Nothing may be launched or forgotten in between. */
struct process *processes_next(struct processes *processes, struct process *after);
size_t processes_alive(const struct processes *processes);
/* Those of them that must end before the daemon does. */
size_t processes_to_end(const struct processes *processes);

void process_watch(struct process *process, struct process_watch *watch);
void process_unwatch(struct process_watch *watch);

/* Lets a held process run; what became of it is told to the watchers. Errors: build_not_running. Idempotent when running. */
bool process_resume(struct process *process, struct error *err);

/*
 * Ends it: signal to the whole group (and SIGCONT), after grace_ms SIGKILL to the group. Members that outlive the leader keep the rest of
 * the grace, then they are killed too; exited is told after that. A held one is ended by closing its gate (exit code 125), one that is still
 * starting is told as failed (cancelled). Told by the loop. Idempotent; a later call may shorten the grace, and another signal is sent
 * again. An exited one: true. Errors: bad_params (the signal), not_permitted. Adopted ones must not be stopped.
 */
bool process_stop(struct process *process, int signal, uint64_t grace_ms, struct error *err);
/* One that waits at its gate (also from within ready): undone as if it had not been launched. Told by failed, with cancelled. */
void process_cancel(struct process *process);
/* Stops those that the daemon's end must wait for. */
void processes_stop_all(struct processes *processes, int signal, uint64_t grace_ms);
/*
 * Who descended from one that was stopped, left its group and lives on: as far as it was seen while the stop went on. The pids of the first
 * LIMIT_SURVIVORS; how many there are.
 */
size_t process_survivors(struct process *process, pid_t pids[LIMIT_SURVIVORS]);

/* To the process alone. Errors: build_not_running, not_permitted. */
bool process_signal(struct process *process, int signal, struct error *err);
/*
 * For its standard input: *accepted bytes were taken, written or kept until it reads them. With eof, and when all was taken, its input ends; a
 * terminal gets its end-of-file character instead, and stays open.
 * Errors: build_not_running, unsupported (no pipe and no terminal), io (detail stdin_closed: it reads no more), bad_params (the
 * same detail: after eof), limit_exceeded.
 */
bool process_write(struct process *process, const char *bytes, size_t len, bool eof,
	size_t *accepted, struct error *err);
/* Errors: build_not_running, unsupported (no terminal), io. */
bool process_resize(struct process *process, unsigned rows, unsigned columns, struct error *err);

/* A part of what a stream has said. */
struct process_piece {
	uint64_t offset; /* of the first byte that was given */
	size_t len;
	uint64_t lost_before; /* bytes between what was asked for and offset that are gone */
	uint64_t end;         /* of all that was said so far */
	bool has_ended;       /* nothing will follow end */
};

/*
 * Copies what is kept from *offset on (NULL: the oldest), at most max bytes. Of a pipe or a terminal LIMIT_OUTPUT_BYTES are kept, after the exit
 * LIMIT_OUTPUT_LAST_BYTES. Errors: unsupported (nothing is kept), bad_params (stderr of a terminal; out_of_range: an offset beyond the end), io.
 */
bool process_read_output(struct process *process, enum process_stream stream,
	const uint64_t *offset, char *out, size_t max, struct process_piece *piece, struct error *err);
/* The file of a stream with stdio file into path[PATH_MAX]; false: there is none. */
bool process_output_path(const struct process *process, enum process_stream stream, char *path);

/* What it is. Pointers live as long as the process. */
enum process_state process_state(const struct process *process);
const char *process_state_name(enum process_state state);
bool process_is_adopted(const struct process *process);
enum process_stdio process_stdio(const struct process *process);
const json_t *process_build_id(const struct process *process); /* as first given */
const char *process_key(const struct process *process);        /* the build_id as a string */
pid_t process_pid(const struct process *process);
uint64_t process_started_unix_us(const struct process *process); /* or when it was adopted */
const char *process_cwd(
	const struct process *process); /* as given, or the daemon's; "" when that is not known */
const char *const *process_argv(const struct process *process, size_t *count);
const struct process_exit *process_exit(const struct process *process); /* NULL while it lives */
/* Why a held one that was resumed, or whose gate was killed, never became its program, once exited; NULL: it did. */
const struct error *process_launch_error(const struct process *process);

#endif
