#ifndef CLIENT_RECORD_H
#define CLIENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "client/job.h"
#include "client/profclient.h"
#include "protocol/gate.h"

/* One run of `profctl record`: what was asked for, and what it came to. */
struct record {
	/* Asked for. */
	json_int_t hz;          /* 0: the daemon's default */
	json_int_t duration_ms; /* 0: until the program ends */
	bool kernel, quiet;
	bool json; /* the terminal event as it came, in place of the report */
	const char *label;
	json_t *svg;      /* owned; an object */
	json_t *stacks;   /* owned; members of the request: how stacks are made */
	char *output_dir; /* owned; absolute, or NULL */
	char **argv;      /* the program's */

	struct profclient *client; /* owned */
	struct gate gate;
	struct job job;
	char capture_id[64];
	json_t *final;     /* owned; the terminal event, or NULL */
	struct error lost; /* why there will be no terminal event; code ERROR_NONE when there may */
	bool shows_progress;
};

/* record_report.c: what is printed, all on stderr. */

/* The line that is drawn over and over while the program runs, when record->shows_progress. */
void record_show_progress(const struct record *record, const json_t *params);
void record_clear_progress(const struct record *record);
/* The top functions and the paths, or why there are none. */
void record_report(const struct record *record);

#endif
