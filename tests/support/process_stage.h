#ifndef TESTS_SUPPORT_PROCESS_STAGE_H
#define TESTS_SUPPORT_PROCESS_STAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "process/process.h"
#include "protocol/error.h"

/*
 * A stage for programs: a loop and a table of processes with the real gate, and watchers that write down what they
 * were told. Whatever goes wrong fails the test.
 */

#define STAGE_WAIT_MS 20000

/* Somebody who watches a process and writes down what was told. */
struct seen {
	struct process_watch watch;
	char told[64];   /* a letter each: r(eady) R(unning) f(ailed) o(utput, once) x (exited) */
	char text[4096]; /* the beginning of the output */
	uint64_t bytes[3];
	bool in_order;
	struct process_exit exit;
	struct error err;
	struct process *process;
};

struct process_stage {
	char gate_path[PATH_MAX];
	uv_loop_t loop;
	struct processes *processes;
	struct seen seen; /* of the program that scripts are */
	struct error err; /* for the case's own calls */
	size_t descriptors;
};

/* cmocka's. The end of each test checks that it left nothing: no handle, descriptor, child. */
int stage_set_up(void **state);
int stage_tear_down(void **state);

/* Makes it watch nothing and know nothing. */
void seen_prepare(struct seen *seen);

/* Launches with seen (prepared anew) watching; on false seen->err says why. */
bool stage_launch(
	struct process_stage *stage, struct seen *seen, const struct process_options *options);
/* A shell script, watched by the stage's seen. */
void stage_launch_script(struct process_stage *stage, const char *script);
/* The same, run until the letter was told; until it has exited; held and waiting at its gate. */
void stage_launch_script_until(struct process_stage *stage, const char *script, char what);
void stage_run_script(struct process_stage *stage, const char *script);
void stage_hold_script(struct process_stage *stage, const char *script);
/* Stops the script and runs the loop until it has exited; how many milliseconds that took. */
uint64_t stage_stop(struct process_stage *stage, int signal, uint64_t grace_ms);
/* Runs the loop until the letter was told; returns the turns. */
unsigned stage_run_until(struct process_stage *stage, const struct seen *seen, char what);
/* Launches and runs it until the letter was told. */
void stage_run(struct process_stage *stage, struct seen *seen,
	const struct process_options *options, char what);

uint64_t stage_now_ms(void);
/* Dead, or dead and not reaped by whoever inherited it. */
bool stage_is_gone(pid_t pid);

#endif
