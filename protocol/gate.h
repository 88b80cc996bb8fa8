#ifndef PROTOCOL_GATE_H
#define PROTOCOL_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "protocol/error.h"

/*
 * profd-gate stands before a target: it is started like any program, prepares the process, says that it is
 * ready, waits for one word and then becomes the target by execve, so that pid, parent, terminal and process
 * group are the target's own and whoever measures can attach before the first instruction.
 * The daemon starts it for LaunchProcess; profctl record starts it as its own child. Both use this file.
 *
 * Started as
 *
 *   profd-gate --fd N [--new-group | --new-terminal] [--die-with-parent] [--keep-inherited] [--cwd DIR] [--umask OCTAL]
 *              [--nofile SOFT:HARD] [--profiler PID] -- PROGRAM [ARGUMENT …]
 *
 *   --fd N             the gate's end of a stream socket pair; it is closed by the exec
 *   --new-group        setpgid(0, 0): the target leads a process group of its own
 *   --new-terminal     setsid(), and standard input, which must be a terminal, becomes the controlling one of the new
 *                      session (TIOCSCTTY, ioctl_tty(2)): the target leads session and group, in its foreground
 *   --die-with-parent  PR_SET_PDEATHSIG SIGKILL, and exit at once if the parent is already gone
 *   --keep-inherited   leave signal dispositions, signal mask and open descriptors as they were inherited (nohup and
 *                      "3<file" work as without profd)
 *   --cwd DIR          chdir before PROGRAM is looked up
 *   --umask, --nofile  restore what the launcher had changed for itself (RLIMIT_NOFILE)
 *   --profiler PID     PR_SET_PTRACER: the process that Yama lets read the target
 *
 * Its environment is the target's, but for what is set below: PROGRAM without a slash is looked up in the PATH found there. The gate is
 * linked statically, so that LD_PRELOAD and LD_LIBRARY_PATH of the target do not touch it. Without --keep-inherited it
 * resets every signal's disposition and the signal mask, and closes all descriptors above 2 except N.
 *
 * Words on the socket, ASCII lines:
 *
 *   gate  → owner  "ready 1\n"                           prepared; PROGRAM was found and looks executable
 *   owner → gate   "set NAME=VALUE" and a NUL byte       a variable of the target's environment, over what it has; as often as GATE_SETS, and
 *                                                        GATE_SET_BYTES together (what arms a program for GPU traces is known only now)
 *   owner → gate   "go\n"                                become the target
 *   gate  → owner  "failed STAGE ERRNO MESSAGE\n"        then exit with 127 (not found) or 126 (anything else);
 *                                                        the MESSAGE is one sentence for a person, any UTF-8
 *                                                        without a line end. STAGE is one of the names below
 *   end of stream  to the owner after "go": execve has succeeded;
 *                  to the gate before "go": its owner is gone or changed its mind; it exits with 125
 *
 * STAGE: "arguments" "group" "terminal" "parent" "nofile" "cwd" "program" "environment" "exec". ERRNO is the number of this system.
 *
 * The guard. PR_SET_PDEATHSIG reaches one process and is lost by a set-user-id exec; a group needs somebody who outlives the daemon.
 *
 *   profd-gate --guard --fd N
 *
 * leaves its owner: ignores every signal but SIGKILL and SIGSTOP, has / as its directory, /dev/null as 0 to 2 and no other descriptor than N, and
 * forks; the first process exits with 0 once that is so (126 after a failed line with STAGE "guard"), the second, named profd-guard, is
 * nobody's child and makes a session of its own. The first says who that is:
 *
 *   "guard PID\n"     before it exits; nothing follows
 *
 * The second reads lines
 *
 *   "+PGID\n"        this process group shall not outlive the owner (GATE_GUARD_GROUPS at most)
 *   "-PGID\n"        it has ended, or may: its number will be somebody else's
 *   end of stream    the owner is gone: every group that is listed gets SIGKILL; then it exits
 *
 * A line that is none of these ends it, killing nothing: the owner sees the end of the stream, and starts another. What was written
 * before the owner's death is read before its end, so a group is safe as soon as its line is written: the owner writes it before it
 * says "go" to that group's gate.
 */

#define GATE_READY      "ready 1\n"
#define GATE_GO         "go\n"
#define GATE_SET        "set "
#define GATE_LINE_BYTES 4608 /* a failed line at most, with its line end */
#define GATE_SETS       64
#define GATE_SET_BYTES  (256 * 1024) /* of their texts, each with its NUL byte */

#define GATE_GUARD_READY      "guard %d\n"
#define GATE_GUARD_GROUPS     1024
#define GATE_GUARD_LINE_BYTES 16

#define GATE_EXIT_NO_GO      125
#define GATE_EXIT_CANNOT_RUN 126
#define GATE_EXIT_NOT_FOUND  127

/* What to start. All strings borrowed for the call. */
struct gate_options {
	const char *gate_path;   /* the profd-gate program */
	const char *const *argv; /* the target's, NULL-terminated, argv[0] not empty */
	const char *const *env;  /* the target's whole environment, NULL-terminated */
	const char *cwd;         /* absolute, or NULL to stay */
	bool new_group;
	bool new_terminal; /* stdio[0] is a terminal; not with new_group */
	bool die_with_parent;
	bool keep_inherited;           /* for a gate in the user's own terminal */
	long umask_bits;               /* -1: leave */
	long nofile_soft, nofile_hard; /* -1: leave */
	pid_t profiler_pid;            /* 0: nobody */
	int stdio[3];                  /* descriptors that become 0, 1, 2; -1: inherit */
};

/* A gate that was started and whose target does not run yet. Zero-initialise, fd = -1. */
struct gate {
	pid_t pid;
	int fd; /* the owner's end: close-on-exec, non-blocking; owned */
	size_t used;
	char line[GATE_LINE_BYTES];
};

enum gate_state {
	GATE_WAITING,  /* nothing new: poll gate->fd for reading and call again */
	GATE_IS_READY, /* it waits for gate_go */
	GATE_RUNNING,  /* the exec has succeeded (end of stream after go) */
	GATE_FAILED,   /* err says why; code launch_failed, detail one of "not_found" "not_executable"
	                "is_directory" "no_interpreter" "cwd" "gate_died" or the stage */
};

/*
 * Starts the gate (posix_spawn; call from the main thread when die_with_parent is set, the death signal follows
 * the thread). The caller must reap gate->pid, whatever happens. On failure nothing runs.
 * Errors: launch_failed with the gate's path.
 */
bool gate_start(struct gate *gate, const struct gate_options *options, struct error *err);

/* Reads what the gate said, without blocking. gone is true after gate_go was sent, so that an end of stream
 * is told apart. Call when fd is readable. */
enum gate_state gate_read(struct gate *gate, bool gone, struct error *err);

/* As gate_read, but waits up to timeout_ms for an answer (-1: for ever). For programs without an event loop. */
enum gate_state gate_wait(struct gate *gate, bool gone, int timeout_ms, struct error *err);

/*
 * Sets a variable in the environment of a gate that is ready. Waits while its socket is full: for programs without an event loop. False: err says why, as for
 * GATE_FAILED; the gate is dead.
 */
bool gate_set(struct gate *gate, const char *name, const char *value, struct error *err);

/* Says "go". False when the gate is dead. */
bool gate_go(struct gate *gate, struct error *err);

/* Closes the owner's end; before gate_go this makes the gate exit. Harmless when repeated. */
void gate_close(struct gate *gate);

#endif
