#ifndef SAMPLER_PERF_RECORD_H
#define SAMPLER_PERF_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "base/map.h"
#include "base/vec.h"
#include "sampler/sampler.h"
#include "target/cpu_time.h"

/*
 * What the records say (perf_event_open(2), "MMAP layout"), told to a sink. The samples hold TID, TIME and CALLCHAIN, and every
 * other record ends with TID and TIME. Knows which threads live, because a FORK has no name and an EXIT does not say
 * whether it was the last. Reads bytes only; checks every size. One thread.
 */
struct perf_task {
	pid_t pid, tid; /* pid 0: none */
	char name[16];
	struct target_cpu_time
		before; /* what it had consumed before it was sampled; see perf_accounts.h */
};

/* A processor on which the kernel withholds an event's samples. */
struct perf_throttle {
	int cpu;
	uint64_t stream, since_ns; /* stream 0: over */
};

struct perf_records {
	struct sampler_sink sink;
	struct sampler_counters *counters; /* borrowed */
	uint32_t max_depth;
	uint64_t
		sample_type; /* what the samples hold: PERF_SAMPLE_TID and TIME, and of CALLCHAIN, REGS_USER and STACK_USER those that are set */
	pid_t pid, parent_pid; /* of the process that is sampled */
	uint64_t last_ns;      /* the sink's time never falls */
	uint64_t tick_ns;      /* the kernel's; it lets a throttled event go on at the next one */
	struct map tasks;      /* tid → index into names */
	struct map living;     /* pid → number of its threads */
	VEC(struct perf_task) names;
	VEC(size_t) unused;                  /* indices of names; always has room for all of them */
	VEC(struct perf_throttle) throttles; /* one for a processor */
	uint64_t lost;                       /* as the records told */
	uint64_t
		withheld_ns; /* for how long events were throttled at most: their threads may not have run all of it */
};

void perf_records_finish(struct perf_records *records);

/* The callbacks of perf_merge; context is the perf_records. */
void perf_records_take(
	void *context, uint64_t time_ns, const struct perf_event_header *header, int cpu);
void perf_records_broken(void *context, int cpu);

/* A record of a mapping that is not in its turn yet: sink.mapped. Others, and broken ones, are nothing. */
void perf_records_take_early(
	const struct perf_records *records, const struct perf_event_header *header);

/* So many records found no room, as the kernel counts it at the end: tells the sink of those of which no record told. A ring tells when it has room again and
 * is written to; where the threads have moved to other processors it never is. */
void perf_records_lost(struct perf_records *records, uint64_t time_ns, uint64_t lost);

/* A thread that was there before the events: tells the sink. */
void perf_records_add_thread(struct perf_records *records, uint64_t time_ns, pid_t pid, pid_t tid,
	const char name[16], const struct target_cpu_time *before);

#endif
