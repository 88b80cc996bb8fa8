#ifndef CAPTURE_ANALYZER_H
#define CAPTURE_ANALYZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <uv.h>

#include "capture/artifacts.h"
#include "capture/pipeline.h"
#include "protocol/error.h"

/*
 * One profd-analyzer process: started, fed over its channel (profile/analysis.h), watched, reaped. What it says
 * is not trusted: it parses files that the target chose. Loop thread only.
 *
 *   analyzer_start ──► analyzer_feed ──► progress … ──► done | failed ──► analyzer_close
 */
struct analyzer;

/* Exactly one of done and failed is called, once, never from within a call into here, and not after analyzer_close. */
struct analyzer_ops {
	void (*progress)(void *context, unsigned permille, bool is_writing);
	/* The outputs are complete. body is the "done" packet, an object; borrowed for the call. */
	void (*done)(void *context, const json_t *body);
	/* It said that it failed (err is what it said, checked), or it has ended or was ended: err is internal, detail "analyzer". */
	void (*failed)(void *context, const struct error *err);
};

struct analyzer_options {
	uv_loop_t *loop;
	const char *path; /* the program; borrowed for the call */
	const struct analyzer_ops *ops;
	void *context;
	uint64_t stall_ms; /* without a word from it for so long it is killed */
};

/* What it shall read and write. Borrowed until done, failed or close. */
struct analyzer_input {
	const char *capture_id;
	bool symbols;
	bool has_same_kernel; /* that of the capture runs now: our vDSO is its vDSO */
	int journal_fd;
	int kernel_symbols_fd;             /* -1: none */
	int kept_symbols_fd;               /* an earlier capture.symbols; -1: none */
	const struct artifacts *artifacts; /* those with a descriptor */
	const struct pipeline_image *images;
	size_t image_count;
	const json_t *facts;
};

/* Starts the process, so that it is ready when there is something to read. Errors: io, limit_exceeded, not_permitted. */
struct analyzer *analyzer_start(const struct analyzer_options *options, struct error *err);
void analyzer_feed(struct analyzer *analyzer, const struct analyzer_input *input);
/* Now, and nothing else of it: before an exit. */
void analyzer_kill(const struct analyzer *analyzer);
/*
 * Takes the analyzer: no callback comes any more, the process is reaped in the background (killed at once, or when it has not
 * ended after 2 s) and closed is called when nothing of it is left. closed may be NULL.
 */
void analyzer_close(
	struct analyzer *analyzer, bool kill_now, void (*closed)(void *context), void *context);

#endif
