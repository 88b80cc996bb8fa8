#ifndef CAPTURE_PIPELINE_H
#define CAPTURE_PIPELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/sample_stacks.h"
#include "profile/journal_writer.h"
#include "protocol/error.h"
#include "sampler/sampler.h"

/*
 * From samples to the journal: the sink of a sampler. Gives each distinct stack an id, opens the target's files at
 * first sight, and writes records. Runs on the sampling thread; for a known stack it allocates, formats and locks nothing.
 */
struct pipeline;

struct pipeline_options {
	struct journal_writer *writer; /* borrowed */
	const char *capture_json;      /* the CAPTURE record's text; borrowed for the call */
	pid_t pid;                     /* samples of other processes are dropped (counted apart) */
	uint64_t period_ns;
	bool kernel_frames;
	enum sample_unwind unwind;
	struct codes *codes; /* a reference is taken; NULL with SAMPLE_UNWIND_FP */
	uint32_t max_frames; /* of an unwound stack; 0: the default */
	bool stitches;       /* unwound stacks that are cut are completed where that is certain */
};

struct pipeline *pipeline_create(const struct pipeline_options *options, struct error *err);
void pipeline_destroy(struct pipeline *pipeline);

/* Does it want registers and copies of stacks? */
bool pipeline_unwinds(const struct pipeline *pipeline);

/* The sink for sampler_config; the sampler must have stopped before destroy. */
struct sampler_sink pipeline_sink(struct pipeline *pipeline);

/* Counters for progress; any thread, relaxed. */
struct pipeline_counters {
	_Atomic uint64_t samples, lost, throttled, threads, stacks, truncated;
	_Atomic uint64_t first_sample_ns, first_exec_ns; /* 0: none yet */
};
const struct pipeline_counters *pipeline_counters(const struct pipeline *pipeline);

/* After the sampler has stopped. Writes the END record. */
void pipeline_end(struct pipeline *pipeline, const char *reason, uint64_t time_ns);

/* After the sampler has stopped: the files that were opened, by journal image id; the descriptors stay the pipeline's. */
struct pipeline_image {
	uint32_t id;
	int fd;
};
const struct pipeline_image *pipeline_images(const struct pipeline *pipeline, size_t *count);
/* CPU time that the kernel counted, 0 when it was not told. */
uint64_t pipeline_cpu_time_ns(const struct pipeline *pipeline);

#endif
