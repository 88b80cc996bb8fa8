#ifndef SAMPLER_PERF_EVENTS_H
#define SAMPLER_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "base/vec.h"
#include "protocol/error.h"
#include "sampler/perf_buffers.h"
#include "sampler/sampler.h"

/*
 * The events: for each task that is sampled and each processor one cpu-clock with a fixed period, inherited by the threads
 * that the task makes. Every one of them can fail for want of a descriptor; the caller tells how many.
 */
struct perf_events {
	struct perf_event_attr attr; /* as this kernel and our rights take it */
	VEC(int) fds;
	VEC(int) more_fds; /* those with larger copies of the stack, disabled until perf_events_grow */
	uint32_t more_stack_bytes;
	bool cannot_grow; /* not all of them could be had, or it has grown */
	size_t failures;
	int failure; /* the errno of the latest */
};

/*
 * Finds out, with one event on the process, how it can be sampled: kernel included, else user only; threads
 * inherit, else also processes. Nothing stays open. Errors: hz_too_high, not_permitted, process_not_found, backend_unavailable, limit_exceeded.
 */
bool perf_events_settle(
	struct perf_events *events, const struct sampler_config *config, struct error *err);

/* Opens a task's events into the rings. False when the task is gone, or nothing could be opened (failure says why). */
bool perf_events_add(struct perf_events *events, const struct perf_buffers *buffers, pid_t tid);

/* From here on larger copies are made. False: they cannot be. */
bool perf_events_grow(struct perf_events *events);

/* The error for an errno of perf_event_open. Returns false. */
bool perf_events_error(int failure, pid_t pid, struct error *err);

bool perf_events_kernel_sampled(const struct perf_events *events);
/* Children of the process are counted too: an old kernel. */
bool perf_events_include_children(const struct perf_events *events);

void perf_events_disable(const struct perf_events *events);
/* What the kernel counted, of threads that ended too. */
struct perf_count {
	uint64_t cpu_ns; /* while the events were not throttled */
	uint64_t
		lost; /* records that found no room in a ring, also those of which no ring has told yet; 0 before Linux 6.0 */
};
struct perf_count perf_events_count(const struct perf_events *events);
void perf_events_close(struct perf_events *events);

#endif
