#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/error.h"

/*
 * A way to find out, again and again, where the threads of a process are. A sampler opens its sources, runs one thread of its
 * own, and hands what it sees to a sink, on that thread, ordered by time over all CPUs (docs/architecture.md).
 * What is done with it is the sink's business: the sampler knows no journal and no stack table.
 */

struct sampler_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t pid, tid;
	/* Leaf first, the kernel's PERF_CONTEXT_ markers taken out: kernel frames, then user frames. Borrowed for the call. */
	const uint64_t *kernel_frames;
	size_t kernel_count;
	const uint64_t *user_frames;
	size_t user_count;
	bool cut; /* the chain reached the depth limit */
	/* With sampler_config.stack_bytes, in place of user frames: where the thread was in its own code. The registers by their numbers in DWARF, and a bit for each
	 * that is known; the program counter beside them, because only some machines give it a number. NULL: it has no such code (or it is of another machine). */
	const uint64_t *registers;
	uint64_t registers_known;
	uint64_t pc;
	/* The piece of its stack that was copied, from its stack pointer upwards. Borrowed for the call. */
	const uint8_t *stack;
	size_t stack_bytes;
	bool
		stack_ended; /* it was not copied further because there was no memory: its end, or a page that was never touched */
};

#define SAMPLER_REGISTERS 64

struct sampler_process { /* a fork (is_fork), an exec (is_exec), or a process that was there */
	uint64_t time_ns;
	pid_t pid, parent_pid;
	const char *name; /* NUL-terminated, the kernel's 15 bytes; borrowed */
	bool is_exec, is_fork;
};

struct sampler_thread { /* born, there at the start, or renamed */
	uint64_t time_ns;
	pid_t pid, tid;
	const char *name; /* borrowed */
};

struct sampler_mapping { /* executable mappings only */
	uint64_t time_ns;
	pid_t pid;
	uint64_t start, length, file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
	uint32_t protection; /* PROT_… */
	const char *
		path; /* as the kernel says it: a path, "//anon", "[vdso]"; " (deleted)" was cut off. Borrowed */
};

/*
 * By the kernel's own accounting, since sampling began. A process's last one comes after the last record and is exact; those before it, and those of threads
 * (told while several live, and for a thread for the last time up to a second before its end), are as of the look.
 */
struct sampler_cpu_time {
	uint64_t time_ns;
	pid_t pid, tid; /* tid 0: the whole process */
	uint64_t total_ns;
	uint64_t user_ns, system_ns; /* of that; both 0: not known */
};

enum sampler_loss { SAMPLER_LOSS_RING, SAMPLER_LOSS_THROTTLED, SAMPLER_LOSS_MALFORMED };

/* Called on the sampling thread only. */
struct sampler_sink {
	void *context;
	void (*process)(void *context, const struct sampler_process *process);
	void (*process_end)(void *context, uint64_t time_ns, pid_t pid);
	void (*thread)(void *context, const struct sampler_thread *thread);
	void (*thread_end)(void *context, uint64_t time_ns, pid_t pid, pid_t tid);
	void (*mapping)(void *context, const struct sampler_mapping *mapping);
	/* Must not allocate, format or lock for a stack that it knows. */
	void (*sample)(void *context, const struct sampler_sample *sample);
	void (*loss)(void *context, uint64_t time_ns, enum sampler_loss cause, uint64_t count, int cpu);
	/* After each round of draining, at least every 250 ms while anything runs and every second at most: flush what waits. */
	void (*drained)(void *context, uint64_t now_ns);
	/* Once, after the last record, if at all: for so long the kernel has withheld samples of threads that ran, because too many came in one tick. */
	void (*throttled)(void *context, uint64_t time_ns, uint64_t withheld_ns);
	/* Now and then, and once after the last record. */
	void (*cpu_time)(void *context, const struct sampler_cpu_time *time);
	/* As soon as code was mapped, out of order and not for every mapping: its file can be opened while it is there. mapping comes for it in its turn.
	 * time_ns is 0. NULL is fine. */
	void (*mapped)(void *context, const struct sampler_mapping *mapping);
	/* After drained: are larger copies of the stacks wanted? Asked until it is true once. NULL: never. */
	bool (*wants_more)(void *context);
};

#define SAMPLER_STACK_BYTES_MAX 65528

struct sampler_config {
	pid_t pid;
	bool is_gated; /* pid is a waiting profd-gate: begin with its exec */
	uint64_t hz;
	bool kernel_frames; /* hand them over where they may be seen */
	uint32_t max_depth; /* frames; 0: the kernel's limit */
	/* Not 0: registers and so much of the stack are copied, for whoever unwinds it; else the kernel follows the frame pointers. More is copied
	 * from when the sink wants it (wants_more) on, if events for that could be had. Multiples of 8, at most SAMPLER_STACK_BYTES_MAX. */
	uint32_t stack_bytes, more_stack_bytes;
	uint64_t drain_ms; /* 0: the sampler's choice */
	struct sampler_sink sink;
};

/* The period that stands for hz (not 0), of every sampler. Odd, so that it does not beat with what a program does at round intervals. */
static inline uint64_t sampler_period_ns(uint64_t hz)
{
	return (1000000000 / hz) | 1;
}

/* What it came to; known when start returns. */
struct sampler_effective {
	const char *name; /* "perf" */
	uint64_t hz, period_ns;
	uint32_t max_depth;
	uint32_t
		stack_bytes; /* that are copied; 0: the kernel follows the frame pointers, also when copies were asked for and cannot be had */
	bool kernel_sampled; /* time in the kernel is sampled (its frames may be dropped) */
	bool kernel_frames;
	size_t ring_bytes;     /* of all rings together */
	size_t cpus;           /* processors that have a ring */
	size_t events;         /* descriptors in use */
	size_t event_failures; /* events that could not be opened or mapped (told by a warning) */
	char warning_code
		[48]; /* "" or a snake_case name, with warning a sentence, with warning_hint what helps */
	char warning[512];
	char warning_hint[256];
};

/* Counters for progress, written by the sampling thread (relaxed), read by any. */
struct sampler_counters {
	_Atomic uint64_t samples, lost, throttled;
};

struct sampler;

struct sampler_ops {
	const char *name;
	/* Can it work here, for this process and rate? On false, err says what to change. Any thread. */
	bool (*probe)(const struct sampler_config *config, struct error *err);
	/* Opens everything and starts the thread; when it returns, the next instruction of the target can be sampled.
	 * The caller owns *sampler and must stop it. Loop thread. Errors: hz_too_high, not_permitted, process_not_found,
	 * backend_unavailable, limit_exceeded. */
	bool (*start)(const struct sampler_config *config, struct sampler **sampler,
		struct sampler_effective *effective, struct error *err);
	const struct sampler_counters *(*counters)(const struct sampler *sampler);
	/* Stops the sources, drains what they hold, calls cpu_time, joins the thread, frees. No callback runs after this.
	 * NULL is fine. Blocks for some milliseconds: any one thread, not at once with itself. */
	void (*stop)(struct sampler *sampler);
};

/* perf_event_open(2). */
extern const struct sampler_ops sampler_perf_ops;

/* The backends of this system, best first, NULL-terminated; name "auto" takes the first whose probe says yes. NULL: err. */
const struct sampler_ops *sampler_choose(
	const char *name, const struct sampler_config *config, struct error *err);

#endif
