#ifndef ANALYZER_JOB_H
#define ANALYZER_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "profile/analysis.h"
#include "protocol/error.h"

/*
 * One capture from "begin" to "done" (profile/analysis.h): its journal, read at once, the files that were given for its images, and
 * the outputs to write. Nothing is opened here: what is not given is not there.
 */
struct job;

/* channel is borrowed: progress is sent there. begin: the message, whose descriptors are taken. NULL: err. */
struct job *job_create(int channel, struct analysis_message *begin, struct error *err);
void job_destroy(struct job *job);

/* "image", "kernel_symbols" and "kept_symbols". Descriptors are taken. */
bool job_give_image(struct job *job, struct analysis_message *message, struct error *err);
bool job_give_kernel(struct job *job, struct analysis_message *message, struct error *err);
bool job_give_kept(struct job *job, struct analysis_message *message, struct error *err);

/* Names everything, writes and closes the outputs: folded, json, svg, symbols. The "done" message, owned; NULL: err. */
json_t *job_finish(struct job *job, struct error *err);

#endif
