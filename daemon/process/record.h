#ifndef PROCESS_RECORD_H
#define PROCESS_RECORD_H

#include "process/descendants.h"
#include "process/guard.h"
#include "process/input.h"
#include "process/output.h"
#include "process/output_files.h"
#include "process/pidfd.h"
#include "process/process.h"
#include "process/ring.h"
#include "protocol/gate.h"
#include "protocol/limits.h"

/*
 * What one process and the table are made of, for the files of this folder alone:
 * process.c (the table), create.c (names, arguments), watch.c (who is told), stdio.c (descriptors, input and output), launch.c (gate to
 * running), adopt.c, stop.c (signals, the end), forgetting.c (what is remembered).
 */

/* While the gate is there. */
struct launch {
	uv_poll_t poll; /* on gate.fd */
	struct gate gate;
	struct process *process;
	bool failed; /* err says why; told when the process has been reaped */
	bool closing;
	struct error err;
};

struct process {
	struct processes *table;
	struct process *next, *previous; /* in the order of launching */

	json_t *build_id; /* owned */
	char key[LIMIT_ID_BYTES + 1];
	char **argv; /* owned; shortened when it has exited */
	size_t argc;
	char *cwd; /* owned */

	enum process_state state;
	pid_t pid;
	uint64_t started_unix_us;
	struct process_exit exit;
	bool adopted; /* not our child: never signalled nor reaped */
	bool leaves;  /* it outlives the daemon */
	bool guarded; /* the guard knows its group */
	bool hold;
	bool went; /* "go" was said */
	bool
		was_held; /* whoever launched it knows it by its name: its end is told as such, also when it never ran */
	bool forgotten;   /* out of the table; freed when its last handle has closed */
	unsigned handles; /* open or closing */

	struct launch *launch;      /* NULL once it runs or the gate is closed */
	struct error *launch_error; /* owned; NULL: none, or memory was out */
	struct pidfd_watch ended;
	enum process_stdio stdio;
	struct output outputs[2]; /* with PROCESS_STDIO_PTY the first alone */
	struct ring rings[2];     /* what they said last */
	struct input input;
	int terminal_fd; /* the program's end, held while it runs, so that it may close and open its terminal; -1 */
	char files[OUTPUT_FILES_NAME_BYTES]; /* its folder with PROCESS_STDIO_FILE; "" */
	uv_timer_t timer;

	bool
		has_ended; /* the leader is a zombie: not reaped before everything is over, so that its group's number stays ours */
	bool stopping; /* process_stop was called */
	bool cancelled;       /* process_cancel was called: its end is a launch that failed */
	int stop_signal;      /* the last one that was sent */
	uint64_t kill_at_ms;  /* loop time of the SIGKILL, while stopping */
	bool killed;          /* SIGKILL was sent to the group */
	uint64_t look_ms;     /* the pause between two looks for members of the group */
	uint64_t kin_look_ms; /* and for descendants */
	uint64_t look_at_ms;  /* loop time of the next look for descendants */
	bool counts_survivors;
	struct descendants descendants; /* while stopping; after the exit those that lived then */
	uint64_t
		drain_until_ms; /* loop time when output that others hold open is given up, once has_ended */
	uint64_t forget_at_ms; /* loop time, once exited */

	struct process_watch *watches; /* in the order of watching */
	struct process_watch *cursor;  /* the next to be told, while telling */
	struct process_watch *added;   /* by a watcher while telling */
	bool telling;
};

struct processes {
	uv_loop_t *loop;       /* borrowed */
	const char *gate_path; /* borrowed */
	long umask_bits, nofile_soft, nofile_hard;
	int data_fd;          /* borrowed; -1: there is no data folder */
	const char *data_dir; /* borrowed */
	struct guard guard;
	pid_t helpers[LIMIT_HELPERS]; /* that the guard knows; helpers.h */
	size_t helper_count;
	struct process *first, *last; /* those in the table */
	size_t alive, exited;
	uint64_t next_id;
	uv_timer_t forgetting; /* armed while an exited one is remembered */
	char *bytes;           /* owned; what outputs are read into */
};

/* process.c */

/* One handle of the process has closed; frees it after the last, when forgotten. */
void process_handle_closed(struct process *process);
void process_free(struct process *process);
void process_close_handles(struct process *process);
void process_unlink(struct process *process);
/* Out of the table. Its memory goes with its last handle. */
void process_forget(struct process *process);
/* The daemon's end is its own: not of an adopted one, and not of one that is left, from the moment it may run. */
bool process_must_end(const struct process *process);
/* The newest of that name; NULL. */
struct process *processes_find_key(struct processes *processes, const char *key);

/* create.c */

/* A named one in the table that has nothing but its timer. NULL: err. */
struct process *process_create(struct processes *processes, json_t *build_id,
	const char *const *argv, const char *cwd, struct error *err);
/* Instead of those it had. False: memory is out, it has them still. */
bool process_set_argv(struct process *process, const char *const *argv);

/* stdio.c */

/* What becomes 0, 1 and 2 of the program. stdio[0 … 2] are the caller's to close, also on failure; equal ones are one. */
bool process_open_stdio(struct process *process, int stdio[3], struct error *err);
/* When it has ended: a terminal ends too, once nobody else has it. */
void process_release_terminal(struct process *process);

/* forgetting.c */

/* Out of the table, then told. The process may be freed afterwards. */
void process_fail(struct process *process, const struct error *err);
/* Told, remembered, and the oldest forgotten. */
void process_remember(struct process *process);

/* Somebody stopped watching: an exited one may go now. */
void process_unwatched(struct process *process);
void processes_forget_due(uv_timer_t *timer);
/* Its output files, when nobody can ask for them any more. At the daemon's own end they stay. */
void process_remove_files(struct process *process);

/* watch.c */

/* Tell those who watch. The last two end the watching. */
void process_tell_ready(struct process *process);
void process_tell_running(struct process *process);
void process_tell_output(struct process *process, enum process_stream stream, uint64_t offset,
	const char *bytes, size_t len);
void process_tell_failed(struct process *process, const struct error *err);
void process_tell_exited(struct process *process);
/* Lets go of all, untold. */
void process_end_watching(struct process *process);

/* launch.c */

/* Starts the gate and everything that watches the new process; argv, cwd and names are set. */
bool process_start(
	struct process *process, const struct process_options *options, struct error *err);
/* Reads what the gate said to the end, once the process has ended. */
void process_settle_launch(struct process *process);
void process_close_launch(struct process *process);

/* stop.c */

/* Gives a gate that is of no use so long to end, then kills it. */
void process_expect_end(struct process *process, uint64_t within_ms);
/* Does whatever is due: looks for the end, kills, drains, reaps and tells. The process may be gone afterwards. */
void process_advance(struct process *process);

#endif
