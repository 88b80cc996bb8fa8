#ifndef TESTS_SUPPORT_GATE_STAGE_H
#define TESTS_SUPPORT_GATE_STAGE_H

#include <limits.h>
#include <sys/types.h>

#include "protocol/gate.h"

/* A stage for the real gate: a folder to work in, and programs that write into a pipe. Whatever goes wrong fails the test. */

#define STAGE_WAIT_MS 10000

struct gate_stage {
	char gate_path[PATH_MAX];
	char folder[PATH_MAX]; /* for files of a case, and its working directory */
};

/* A gate whose program writes into a pipe. */
struct run {
	struct gate gate;
	struct error err;
	enum gate_state state; /* the last one */
	int out;               /* the pipe's reading end */
	char text[8192];       /* all that was written */
	int status;            /* of waitpid */
};

/* cmocka's, of the group: enter and remove the folder. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* The program in the folder with a plain environment; argv stays the caller's. */
struct gate_options stage_options(const struct gate_stage *stage, const char *const *argv);
/* Starts the gate, and waits for its first word. */
void stage_begin(struct run *run, struct gate_options options);
/* The gate must be ready; lets it go and waits for what became of it. */
void stage_go(struct run *run);
/* Closes the gate, reads all that was written and reaps. */
void stage_finish(struct run *run);
/* Runs it to its end, which must be a good one. */
void stage_run_all(struct run *run, struct gate_options options);
/* In the folder. */
void stage_write_file(const char *name, const char *text, mode_t mode);

#endif
