#ifndef CLIENT_GPU_H
#define CLIENT_GPU_H

#include <stdbool.h>

#include <jansson.h>

#include "client/gpu_settings.h"
#include "client/recording.h"

/* What a Ctrl-C is to end that came while the trace was still being written. */
enum gpu_end { GPU_END_NOTHING, GPU_END_PROGRAM, GPU_END_GROUP };

/* One run of `profctl gpu`: what was asked for, and what it came to. */
struct gpu {
	/* Asked for. */
	struct gpu_settings settings;
	const char *settings_file; /* or NULL */
	json_t *params;            /* owned; members of StartGpuTrace that options set */
	const char *api;           /* what the program works with; NULL: the daemon's default */
	bool quiet;
	bool json;   /* the terminal event as it came, in place of the report */
	char **argv; /* the program's */

	struct recording recording;
	json_t *environment;     /* owned; what arms the program */
	bool until_stopped;      /* no range: Ctrl-C ends the trace, and the program ignores it */
	int interrupts;          /* those that were acted upon */
	int terminal_interrupts; /* of them, the terminal's */
	enum gpu_end end;
	bool is_told;     /* the end of the trace, */
	bool is_end_told; /* and that of the program, as far as it is the cause */
};

/* gpu_interrupts.c: Ctrl-C under a trace without a range, whose program ignores it. */

/*
 * Of those that came since: the first ends the trace, each further one the program, by SIGTERM; the terminal's with all that is in its foreground. While the trace is
 * being written the end is held back once, as the program would take with it what is not written.
 */
void gpu_take_interrupts(struct gpu *gpu);
/* An end that was held back comes now, when the trace has ended. */
void gpu_end_held(struct gpu *gpu);

/* gpu_report.c: what is printed, all on stderr. */

/* The line that is drawn over and over while the program runs, when shows_progress. context is the gpu. */
void gpu_show_progress(void *context, const json_t *params);
/* The frames, the device and the path, or why there is no trace. */
void gpu_report(const struct gpu *gpu);
/* Of a trace that was lost with its program: the signal that ended it, which profd cannot know of another's child. Nothing of any other. */
void gpu_report_signal(const struct gpu *gpu);

#endif
