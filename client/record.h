#ifndef CLIENT_RECORD_H
#define CLIENT_RECORD_H

#include <stdbool.h>

#include <jansson.h>

#include "client/recording.h"

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

	struct recording recording;
};

/* record_report.c: what is printed, all on stderr. */

/* The line that is drawn over and over while the program runs, when shows_progress. context is the record. */
void record_show_progress(void *context, const json_t *params);
/* The top functions and the paths, or why there are none. */
void record_report(const struct record *record);

#endif
