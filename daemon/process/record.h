#ifndef PROCESS_RECORD_H
#define PROCESS_RECORD_H

#include "process/output.h"
#include "process/pidfd.h"
#include "process/process.h"
#include "protocol/gate.h"
#include "protocol/limits.h"

/*
 * What one process and the table are made of, for the files of this folder alone:
 * process.c (table and names), watch.c (who is told), launch.c (gate to running), stop.c (signals, the end).
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
	bool hold;
	bool went; /* "go" was said */
	bool
		was_held; /* whoever launched it knows it by its name: its end is told as such, also when it never ran */
	bool forgotten;   /* out of the table; freed when its last handle has closed */
	unsigned handles; /* open or closing */

	struct launch *launch;      /* NULL once it runs or the gate is closed */
	struct error *launch_error; /* owned; NULL: none, or memory was out */
	struct pidfd_watch ended;
	struct output outputs[2];
	uv_timer_t timer;

	bool
		has_ended; /* the leader is a zombie: not reaped before everything is over, so that its group's number stays ours */
	bool stopping; /* process_stop was called */
	bool cancelled;      /* process_cancel was called: its end is a launch that failed */
	int stop_signal;     /* the last one that was sent */
	uint64_t kill_at_ms; /* loop time of the SIGKILL, while stopping */
	bool killed;         /* SIGKILL was sent to the group */
	uint64_t look_ms;    /* the pause between two looks for members of the group */
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
	struct process *first, *last; /* those in the table */
	size_t alive, exited;
	uint64_t next_id;
	uv_timer_t forgetting; /* armed while an exited one is remembered */
	char *bytes;           /* owned; what outputs are read into */
};

/* process.c */

/* One handle of the process has closed; frees it after the last, when forgotten. */
void process_handle_closed(struct process *process);
/* Out of the table, then told. The process may be freed afterwards. */
void process_fail(struct process *process, const struct error *err);
/* Told, remembered, and the oldest forgotten. */
void process_remember(struct process *process);

/* Somebody stopped watching: an exited one may go now. */
void process_unwatched(struct process *process);

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
