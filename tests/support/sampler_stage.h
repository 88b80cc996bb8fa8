#ifndef SUPPORT_SAMPLER_STAGE_H
#define SUPPORT_SAMPLER_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/sampler.h"

/*
 * The real kernel samples a real child: the test's program again, started with the name of one of the programs in
 * sampler_programs.c. Each of them tells through a descriptor what is true of it. Whatever goes wrong fails the test.
 */
#define STAGE_THREADS   4
#define STAGE_HZ        999
#define STAGE_REPORT_FD 3

/* What the child says of itself. */
struct truth {
	uint64_t cpu_ns; /* of the process */
	pid_t tids[STAGE_THREADS];
	uint64_t thread_cpu_ns[STAGE_THREADS];
	uint64_t start, length, offset; /* of its own code, by /proc/self/maps */
};

/* Runs one of the programs: "burn" (1 s), "brief" (0.3 s), "threads", "running", "fork", "exec", "maps". Its exit status; 2: no such. */
int programs_run(const char *name);

/* What the sampler says, written by its thread and read when it has ended. */

struct seen_thread {
	pid_t tid;
	uint64_t samples;
	char name[16];
	bool before_samples;
	size_t looks;
	struct sampler_cpu_time cpu_time; /* the latest */
};

struct seen {
	uint64_t samples, with_kernel, with_user, foreign, lost, malformed;
	uint64_t last_ns, cpu_ns;
	struct sampler_cpu_time cpu_time; /* of the process, the latest */
	size_t rounds, cpu_times, execs, ends;
	pid_t pid, forked;
	bool has_fallen;
	size_t thread_count;
	struct seen_thread threads[64];
	struct sampler_mapping mappings[256];
	char paths[256][512];
	size_t mapping_count, mappings_before_samples;
	char name[16];
};

/* Finds or adds. */
struct seen_thread *seen_find(struct seen *seen, pid_t tid);
/* For seen->pid, with seen as the sink. */
struct sampler_config seen_config(struct seen *seen, bool is_gated);

struct child {
	pid_t pid;
	int go, truth;
};

/* Waits for child_go and then becomes the program; without waits it becomes it at once. */
struct child child_launch(const char *program, bool waits);
void child_go(struct child *child);
/* Reads its (last) truth and reaps it. */
void child_end(struct child *child, struct truth *truth);
bool child_read(const struct child *child, struct truth *truth);

struct sampler *stage_begin(
	const struct sampler_config *config, struct sampler_effective *effective);
/* The whole life of a program, from its first instruction. Nothing is lost, and time never falls. */
void stage_sample(const char *program, struct seen *seen, struct truth *truth,
	struct sampler_effective *effective);
/* Fails when value is not within that share of truth, and more. */
void stage_near(uint64_t value, uint64_t truth, double share, uint64_t more);
uint64_t stage_clock(int clock);

#endif
