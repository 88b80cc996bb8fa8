#ifndef SAMPLER_PERF_ACCOUNTS_H
#define SAMPLER_PERF_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/perf_events.h"
#include "sampler/perf_record.h"
#include "target/cpu_time.h"

/*
 * Looks at the kernel's own accounting now and then and tells the sink, so that what the samples miss can be told apart: time in the
 * kernel, and threads that were too short. The events' own clock (perf_events_count) knows the whole exactly, but neither how it is
 * divided between user and kernel nor between threads. One thread.
 *
 * PERF_RECORD_READ (inherit_stat) would tell each thread's time at its end. But the kernel writes it into the rings of all processors from
 * the one on which the thread ends, and these rings have no lock: they can be broken by it. And each switch between two threads would cost more.
 */
struct perf_pace {
	uint64_t next_ns, pause_ns;
};

struct perf_accounts {
	const struct perf_events *events; /* borrowed */
	pid_t pid;
	bool is_gated, is_over;
	bool is_fresh;                 /* latest is as of the end */
	struct target_cpu_time before; /* sampling, of the process */
	struct target_cpu_time latest; /* since then */
	struct perf_pace process_pace, thread_pace;
	double
		withheld_share; /* of the time in which events were throttled, as far as it is known: their threads ran */
	size_t cursor; /* in the tasks: where the next look at threads begins */
};

/* The first looks come soon, for programs that are short; then, each pause twice the one before, at last one every so often. */
#define PERF_ACCOUNTS_FIRST_NS        10000000
#define PERF_ACCOUNTS_PAUSE_NS        250000000
#define PERF_ACCOUNTS_FIRST_THREAD_NS 160000000
#define PERF_ACCOUNTS_THREAD_PAUSE_NS 1000000000
/* A look at a process costs 2 µs, at a thread some 30. Of more threads than this, others are looked at each time. */
#define PERF_ACCOUNTS_THREADS     8
#define PERF_ACCOUNTS_END_THREADS 1024 /* at the end of sampling, which waits for it */

/* Before the events count. is_gated: the process is to become another program first. */
void perf_accounts_begin(
	struct perf_accounts *accounts, const struct perf_events *events, pid_t pid, bool is_gated);
/* The time until the next look is due. */
uint64_t perf_accounts_wait_ns(const struct perf_accounts *accounts, uint64_t now_ns);
/* Takes a look when it is due. */
void perf_accounts_look(
	struct perf_accounts *accounts, const struct perf_records *records, uint64_t now_ns);
/* The process has ended, and is not reaped yet: a last look, if there is time for it. */
void perf_accounts_look_back(struct perf_accounts *accounts);
/* After the last record. count: what the events have counted. */
void perf_accounts_end(struct perf_accounts *accounts, const struct perf_records *records,
	uint64_t end_ns, const struct perf_count *count);

#endif
